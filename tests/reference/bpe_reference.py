#!/usr/bin/env python3
"""What Hugging Face's tokenizers make of texts with a small vocabulary that they learned, for tests/apps/tokens_test.c:

    python3 tests/reference/bpe_reference.py    (pip install tokenizers; writes tests/reference/bpe)
"""
import json
import pathlib

import tokenizers

HERE = pathlib.Path(__file__).parent
LESSON = """It's the first step that we'll take, and they've said so: don't hurry, I'd rather wait. You're right, I'm sure.
In 1984 there were 12,345 of them; in 2024 only 67. The quick brown fox jumps over the lazy dog, again and again and again.
Größe, Straße, naïve café, déjà vu. Быстрая лиса прыгает через собаку, и ещё раз через собаку. 日本語の文章、日本語の文字。
    int main(void)
    {
        return 0;   // nothing is left to do
    }
\tthe end of the lesson\n\n\n"""
TEXTS = ["", " ", "  ", "\n", "a", " a", "the", " the", "It's we'll they've don't I'd you're I'm 's 'S 't", "IT'S", "12,345.678",
         "the quick brown fox", "the  quick   brown\tfox\n", "\n\n  \n x", "trailing  ", "  leading", "naïve Größe", "日本語の文字",
         "собаку ещё", "😀 and 👩‍👩‍👧", "x²½Ⅷ٣", "\u00a0no\u00a0break\u2003em", "a\u0301 combining", "<|endoftext|>", "\x00\x01\x7f",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "again and again and again", "int main(void)\n{\n    return 0;\n}\n",
         "_under_score __x__ --- === !!!??", "'' '\"' ''s"]


def main():
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=512, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([LESSON], trainer)
    folder = HERE / "bpe"
    folder.mkdir(exist_ok=True)
    made.model.save(str(folder))
    cases = [{"text": text, "ids": made.encode(text).ids} for text in TEXTS + [LESSON]]
    (folder / "cases.json").write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n")


main()

#!/usr/bin/env python3
"""prose_test: the prose of the project is plain English: short sentences, none of the constructions below.

    prose_test.py [ROOT [FILE...]]    lists what breaks a rule, as "file:line: rule: sentence"; exit status 1 if there is any

It reads *.md, every comment of the public headers, and the comment at the head of every other C file. Code, in fences, in
backquotes and indented, is no prose. A new rule is one line of RULES, with its reason.
"""
import re
import subprocess
import sys
from pathlib import Path

SENTENCE = 40  # words. A longer one holds two thoughts, and is read twice.
CELL = 30  # words of a table's cell. A longer one is a paragraph and belongs under the table.
WORD = re.compile(r"[^\W_]")

# A pattern; a sentence that breaks the rule, which the pattern has to find; the mend; why. A pattern sees one sentence, without
# its code.
RULES = [
    (r"^(What|Who|Whoever|Whatever) [^?]*$", "What no factor names is whole.",
     "name the subject", "a relative clause as the subject: the reader waits for its verb"),
    (r"[;,] (what|who) (\w+ ){1,6}?(is|are|has|goes|comes|stays|waits|lies)\b(?![^.]*\?)(?! (and|or|for)\b)",
     "A rank goes on, and what waits for it; what little is missing comes along.",
     "name the subject", "a relative clause as the subject, in mid-sentence"),
    (r"\bwhat (is|was|are|were) (\w+ )?(is|was|are|were)\b", "Here what is carried is stored.",
     "name the subject", "two verbs side by side, and one of them ends a clause"),
    (r"\b(by|for|of|with|from) who\b", "It is finished by who reads it.",
     "name the one", "a relative clause as an object, without a noun before it"),
    (r"^(Of|By|To) (a|an|the|what|whom|these|those|each) [^,]* (is|are|has|have|was|were)\b",
     "Of a dim with fewer elements than ranks a rank has nothing.",
     "subject first", "inverted: the subject comes after the verb, or is missed"),
    (r"^Of (what|no|nothing|none|several|one|two)\b", "Of what is no dtype: 0.",
     "subject first", "inverted: \"for\" a case, or the noun first"),
    (r"\b(of|to|by) whom\b|\bof which\b|\bbehind which\b", "It has many experts, of which each token takes few.",
     "two sentences", "a clause turned round: split it, or say \"whose\""),
    (r"\bwhose \w+ (is|are)\b", "A program whose variables are f32 restores it.",
     "two sentences", "the clause has its own verb, so it is a sentence"),
    (r"\b(the|and its|and their|and the) like\b", "It has weights, biases and the like.",
     "name them", "the reader cannot know which ones"),
    (r"\bsuch (a one|ones)\b", "Another sum is such a one too.",
     "name it", "the noun is clearer"),
    (r"\bbut for\b", "All of it is read, but for the last row.",
     "except for", "\"but for\" is read as \"but\" first"),
    (r"\b(he|she|him|his|himself)\b(?!:)", "A rank keeps his own block.",
     "name it", "a rank, a file or a reader is no man"),
    (r"\bone's own\b", "An op of one's own is added so.",
     "your own", "the reader is spoken to"),
]
COMPILED = [(re.compile(pattern), instead, why) for pattern, _, instead, why in RULES]


# ---- text, as pieces of prose with the line of each ------------------------------------------------------


def paragraphs(lines):
    """(line number, text, is_cell) of each paragraph, item and cell of Markdown. Headings are no sentences."""
    kept, first, is_code, is_blank = [], 0, False, True
    for number, line in enumerate(lines + [""], 1):
        text = line.strip()
        if text.startswith("```"):
            is_code = not is_code
            text = ""
        elif is_code or text.startswith("<!--"):
            text = ""
        elif line.startswith("    ") and is_blank:
            is_blank = True
            continue
        begins = text == "" or re.match(r"([-*+]|\d+\.|#+|\|) ?", text)
        if begins and kept:
            yield first, " ".join(kept), False
            kept = []
        if text.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", text.strip("|")):
                yield number, cell.strip(), True
        elif text and not text.startswith("#"):
            if not kept:
                first = number
            kept.append(re.sub(r"^([-*+]|\d+\.) ", "", text))
        is_blank = text == ""


def comments(text, is_head):
    """(line number, text, False) of each paragraph of C comments; of the first alone where is_head."""
    for match in re.finditer(r"/\*.*?\*/", text, re.S):
        if is_head and text[: match.start()].strip():
            return
        number = text.count("\n", 0, match.start()) + 1
        kept, first = [], number
        for line in match.group()[2:-2].split("\n") + [""]:
            indented = re.match(r"\s*\*\s{4,}\S", line)
            body = line.strip().lstrip("*").strip()
            if body == "" or indented or re.match(r"-? ?\w+(, \w+)*  +\S|- ", body):
                if kept:
                    yield first, " ".join(kept), False
                kept = []
            if body and not indented:
                if not kept:
                    first = number
                kept.append(body)
            number += 1
        if is_head:
            return


CODE = re.compile(r"``.*?``|`[^`]*`|\[[^\]]*:\d[^\]]*\]")  # code is one word, and so is a type: [batch:3, seq:5]
END = re.compile(r"(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!\.\.)(?<=[.!?)])(?<![^.!?]\))\s+")


def sentences(text):
    """(as written, without its code) of each."""
    masked = CODE.sub(lambda code: "`" + "x" * (len(code.group()) - 1), text)
    begin = 0
    for end in [*END.finditer(masked), None]:
        until = end.start() if end else len(text)
        written = text[begin:until].strip()
        if written:
            yield written, re.sub(r"\]\([^)]*\)", "]", CODE.sub("`", written)).replace("**", "")
        begin = until


def n_words(sentence):
    return sum(1 for word in sentence.split() if WORD.search(word) or "`" in word)


# ---- the rules, over one piece ------------------------------------------------------------------------------


def faults_of(text, is_cell):
    parts = list(sentences(text))
    n = sum(n_words(bare) for _, bare in parts)
    if is_cell and n > CELL:
        yield f"{n} words in a cell, more than {CELL}", text
    for written, bare in parts:
        if not is_cell and n_words(bare) > SENTENCE:
            yield f"{n_words(bare)} words, more than {SENTENCE}", written
        for pattern, instead, why in COMPILED:
            if pattern.search(bare):
                yield f"{instead} ({why})", written


def read(path, name):
    text = path.read_text()
    if name.endswith(".md"):
        return paragraphs(text.split("\n"))
    return comments(text, "include/weft" not in name)


def covered(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [str(p.relative_to(root)) for p in root.rglob("*")]
    return sorted(n for n in names if n.endswith((".md", ".h", ".c")) and not n.startswith("build"))


def blind_rules():
    """Rules that do not find their own example, and lengths that are not counted."""
    for pattern, example, _, why in RULES:
        if not any(why in fault for fault, _ in faults_of(example, False)):
            yield f"the rule \"{why}\" does not find: {example}"
    for text, is_cell in (("word " * SENTENCE + "more.", False), ("word " * CELL + "more", True)):
        if not list(faults_of(text, is_cell)):
            yield f"not too long: {text}"
    for text in ("word " * SENTENCE, "Two `code words` and [batch:3, seq:5].", "It reads e.g. " + "word " * (SENTENCE - 3)):
        if list(faults_of(text, False)):
            yield f"too long: {text}"


def main(arguments):
    root = Path(arguments[0] if arguments else Path(__file__).parents[2])
    n = 0
    for blind in blind_rules():
        print(blind)
        n += 1
    for name in arguments[1:] or covered(root):
        for line, text, is_cell in read(root / name, name):
            for fault, sentence in faults_of(text, is_cell):
                print(f"{name}:{line}: {fault}: {sentence}")
                n += 1
    print(f"{n} faults")
    return 1 if n else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

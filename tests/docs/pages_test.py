#!/usr/bin/env python3
"""pages_test: the Python programs of the pages run, and print what the pages say.

A program is a ```python block that imports weft. A block without a language behind it is its output: the words are equal, the
numbers to 1e-3, since the last digits belong to a processor.

    pages_test.py ROOT
"""
import os
import re
import subprocess
import sys
from pathlib import Path

PAGES = ["README.md", "docs/coming-from.md", "docs/data.md", "docs/python.md"]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def programs(text):
    """(program, its output) of each."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    for n, (language, block) in enumerate(blocks):
        if language == "python" and re.search(r"^import weft$", block, re.M):
            yield block, blocks[n + 1][1] if n + 1 < len(blocks) and blocks[n + 1][0] == "" else None


def is_same(printed, said):
    a, b = NUMBER.findall(printed), NUMBER.findall(said)
    words_equal = NUMBER.sub("#", printed) == NUMBER.sub("#", said)
    return words_equal and all(abs(float(x) - float(y)) <= 1e-3 * max(1, abs(float(y))) for x, y in zip(a, b, strict=True))


def main(root):
    environment = dict(os.environ, PYTHONPATH=str(root / "python"), PYTHONDONTWRITEBYTECODE="1")
    n = n_wrong = 0
    for page in PAGES:
        for program, said in programs((root / page).read_text()):
            n += 1
            done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
            if done.returncode != 0 or said is None or not is_same(done.stdout, said):
                n_wrong += 1
                print(f"{page}: a program prints\n{done.stdout}{done.stderr}and the page says\n{said}")
    print(f"{n} programs, {n_wrong} wrong")
    return 0 if n >= len(PAGES) and n_wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

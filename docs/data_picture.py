#!/usr/bin/env python3
"""data_picture: draws docs/data.svg, a chain of two files that are shuffled, mixed and put into batches for two ranks, from a real chain.

    data_picture.py            writes docs/data.svg
    data_picture.py --check    exit status 1 where docs/data.svg is another picture

Every number in the picture is a record that the library read. LIBWEFT names the library.
"""
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
import weft.data  # noqa: E402

PICTURE = Path(__file__).parent / "data.svg"
COUNTS, WEIGHTS, SEED, BATCH, SHOWN = (10, 6), (0.7, 0.3), 3, 4, 16
COLOURS, RANKS = ("#4c78a8", "#f2a541"), ("#59a14f", "#b07aa1")
CELL, LEFT, WIDTH = 30, 190, 720


def write_file(folder, k):
    path = os.path.join(folder, f"{'ab'[k]}.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(["record\n", *(f"{100 * k + i}\n" for i in range(COUNTS[k]))])
    return path


def records(chain, n):
    return [int(number) for number in chain.read(0, n)["record"]]


def text(x, y, size, content, extra=""):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{" " + extra if extra else ""}>{content}</text>'


def draw_cell(x, y, number):
    k, i = divmod(number, 100)
    return [f'<rect x="{x:g}" y="{y:g}" width="{CELL - 3}" height="{CELL - 3}" rx="3" fill="{COLOURS[k]}"/>',
            text(x + (CELL - 3) / 2, y + 19, 13, f"{'ab'[k]}{i}", 'text-anchor="middle" fill="white"')]


def draw_row(y, title, note, numbers, gap=0):
    out = [text(14, y + 14, 15, title, 'font-weight="bold"'), text(14, y + 30, 11, note, 'fill="#666"')]
    for i, number in enumerate(numbers):
        out += draw_cell(LEFT + i * CELL + i // BATCH * gap, y, number)
    return out


def draw_ranks(y, numbers):
    """Which rank reads which rows: each batch is cut in the middle."""
    out = [text(14, y + 14, 15, "ranks", 'font-weight="bold"'), text(14, y + 30, 11, "data:2, batch:data", 'fill="#666"')]
    for i in range(len(numbers)):
        if i % (BATCH // 2) == 0:
            rank = i // (BATCH // 2) % 2
            x = LEFT + i * CELL + i // BATCH * 12
            out.append(f'<rect x="{x:g}" y="{y}" width="{BATCH // 2 * CELL - 3}" height="22" rx="3" fill="{RANKS[rank]}"/>')
            out.append(text(x + (BATCH // 2 * CELL - 3) / 2, y + 16, 12, f"rank {rank}", 'text-anchor="middle" fill="white"'))
    return out


def draw(folder):
    paths = [write_file(folder, k) for k in range(2)]
    plain = [records(weft.data.open(path), count) for path, count in zip(paths, COUNTS)]
    shuffled = [records(weft.data.open(path).shuffle(SEED + k), count) for k, (path, count) in enumerate(zip(paths, COUNTS))]
    mixed = weft.data.mix([weft.data.open(path).shuffle(SEED + k) for k, path in enumerate(paths)], WEIGHTS)
    taken = records(mixed, SHOWN)
    out = []
    for k in range(2):
        out += draw_row(20 + k * 40, f"source {'ab'[k]}", f"a file of {COUNTS[k]} records", plain[k])
        out += draw_row(125 + k * 40, f"shuffle {'ab'[k]}", f"seed {SEED + k}, of this pass", shuffled[k])
    out += draw_row(230, "mix", f"{WEIGHTS[0]} of a, {WEIGHTS[1]} of b", taken)
    out += draw_row(300, f"batches of {BATCH}", f"the first {SHOWN} records", taken, gap=12)
    out += draw_ranks(345, taken)
    at = LEFT + 2 * BATCH * CELL + 2 * 12 - 7
    out.append(f'<path d="M{at} 292 V372" stroke="#d62728" stroke-width="2"/>')
    out.append(text(at + 5, 389, 12, f"a checkpoint here keeps the position, {2 * BATCH}, and a digest of all above", 'fill="#d62728" text-anchor="middle"'))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="400" viewBox="0 0 {WIDTH} 400" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="400" fill="white"/>', *out, "</svg>", ""])


def main():
    with tempfile.TemporaryDirectory() as folder:
        picture = draw(folder)
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture)
        return 0
    if PICTURE.exists() and PICTURE.read_text() == picture:
        return 0
    print("docs/data.svg is another picture; python3 docs/data_picture.py draws it")
    return 1


if __name__ == "__main__":
    sys.exit(main())

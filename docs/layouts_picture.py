#!/usr/bin/env python3
"""layouts_picture: draws docs/layouts.svg, one weight of gpt on four ranks under three layouts, from the plans of gpt.

    layouts_picture.py GPT            writes docs/layouts.svg
    layouts_picture.py GPT --check    exit status 1 where docs/layouts.svg is another picture

GPT is the program, such as build/bin/gpt. Every number in the picture comes from `gpt train --dry-run --json`.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

PICTURE = Path(__file__).parent / "layouts.svg"
TENSOR = "block0.up"
MESH = {"data": 2, "model": 2}
MODEL = ["--layers", "1", "--width", "512"]
SPLIT = "batch:data,hidden:model"
LAYOUTS = [
    ("data parallel", ["--layout", "batch:data"]),
    ("data and tensor parallel", ["--layout", SPLIT]),
    ("the same, with ZeRO 3", ["--layout", SPLIT, "--zero", "3"]),
]
COLOURS = ["#4c78a8", "#f2a541", "#59a14f", "#b07aa1"]
WIDTH, HEIGHT, PANEL, TOP = 240, 120, 290, 86  # of the tensor, of a panel, above the tensor


def plan_of(gpt, options):
    mesh = ",".join(f"{name}:{size}" for name, size in MESH.items())
    command = [gpt, "train", "--dry-run", "--json", "--mesh", mesh, *MODEL, *options]
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return plan, next(t for t in plan["tensors"] if t["name"] == TENSOR)


def coordinates(rank):
    """{axis: coordinate}; the last axis runs fastest."""
    found = {}
    for name, size in reversed(MESH.items()):
        found[name], rank = rank % size, rank // size
    return found


def dims_of(spec):
    """"[embed:512, hidden:2048/model+data]" as (name, size, axes) of each dim, outermost axis first."""
    for dim in spec.strip("[]").split(", "):
        name, size, axes = re.fullmatch(r"(\w+):(\d+)(?:/([\w+]+))?", dim).groups()
        yield name, int(size), axes.split("+") if axes else []


def interval(size, axes, at):
    """The part of 0..size that the rank at these coordinates holds: nested blocks, rounded up."""
    begin, end = 0, size
    for axis in axes:
        block = -(-(end - begin) // MESH[axis])
        begin = min(end, begin + at[axis] * block)
        end = min(end, begin + block)
    return begin, end


def blocks_of(spec):
    """{box: ranks that hold it}."""
    blocks = {}
    for rank in range(MESH["data"] * MESH["model"]):
        box = tuple(interval(size, axes, coordinates(rank)) for _, size, axes in dims_of(spec))
        blocks.setdefault(box, []).append(rank)
    return blocks


def mib(n):
    return f"{n / 2**20:.1f} MiB"


def text(x, y, size, content, extra=""):
    extra = " " + extra if extra else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{extra}>{content}</text>'


def draw_panel(left, title, options, plan, tensor):
    (_, rows, _), (_, columns, _) = dims_of(tensor["storage"])
    yield text(left, 24, 15, title, 'font-weight="bold"')
    yield text(left, 44, 10, " ".join(options), 'font-family="monospace"')
    yield text(left, 62, 10, tensor["storage"], 'font-family="monospace"')
    for n, (((top, bottom), (begin, end)), ranks) in enumerate(blocks_of(tensor["storage"]).items()):
        x, y = left + begin * WIDTH / columns, TOP + top * HEIGHT / rows
        w, h = (end - begin) * WIDTH / columns, (bottom - top) * HEIGHT / rows
        colour = COLOURS[ranks[0]] if len(ranks) < 4 else "#9aa5b1"
        yield f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{colour}" stroke="#ffffff" stroke-width="2"/>'
        label = ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
        yield text(x + w / 2, y + h / 2 + 4, 12, label, 'text-anchor="middle" fill="#ffffff" font-weight="bold"')
    held = plan["memory"]["parameters"] + plan["memory"]["slots"]
    yield text(left, TOP + HEIGHT + 22, 12, f"of this weight, a rank stores {mib(tensor['bytes'])}")
    yield text(left, TOP + HEIGHT + 40, 12, f"of all weights and Adam's state, {mib(held)}")


def draw(gpt):
    width = PANEL * len(LAYOUTS) + 10
    height = TOP + HEIGHT + 56
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="#1b1f24">'
    yield f"<title>{TENSOR} of gpt, embed:512 by hidden:2048, on the mesh data:2,model:2 under three layouts</title>"
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    for n, (title, options) in enumerate(LAYOUTS):
        yield from draw_panel(20 + n * PANEL, title, options, *plan_of(gpt, options))
    yield "</svg>"


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    picture = "\n".join(draw(arguments[0])) + "\n"
    if arguments[1:] == ["--check"]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit("docs/layouts.svg is not the picture of these plans; docs/layouts_picture.py GPT draws it")
    else:
        PICTURE.write_text(picture)


if __name__ == "__main__":
    main(sys.argv[1:])

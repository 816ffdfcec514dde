#!/usr/bin/env python3
"""predict.py: what weft_plan_predict says of a step, beside what a run of it takes: ./run bench --predict.

A cell is a program, a model, a layout and ranks. In each of several rounds this machine is calibrated, the cells' own kernels are
measured, and each cell trains for twenty steps. Others on the machine make times longer, and nothing makes them shorter. So of
each figure and of each cell the fastest of all rounds counts, and a round is minutes from the next. At the end each cell is predicted
from two machine files: one that knows none of the cells' own kernels, and one that does.

What others take of the cores meanwhile is known from /proc/stat: a run beside which it was more than a twentieth is made again, a few
times, when they are quiet.

    ./run bench --predict                         all cells, as a table
    ./run bench --predict --only 'gpt wide*'      those of one model
    ./run bench --predict --keep DIR              files and results stay there; again with the same DIR: rounds are added
    ./run bench --predict --keep DIR --rounds 0 --svg docs/predicted.svg     from what is there
"""
import argparse
import fnmatch
import itertools
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(__file__).resolve().parents[2] / "build/bin"
RAN = re.compile(r"of steps .* the fastest took ([0-9.e+-]+) (us|ms|s), .* the median is ([0-9.e+-]+) (us|ms|s)")
PREDICTED = re.compile(r"predicted to take ([0-9.e+-]+) (us|ms|s);")
PLANNED = re.compile(r"^time on .*: ([0-9.e+-]+) (us|ms|s) a step$", re.M)
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

# A model: its program and options. A layout: its name, mesh, rules, and what else.
MODEL = "hidden:model,heads:model,vocab:model"
GPT_LAYOUTS = [
    ("1 rank", "data:1", "batch:data", ""),
    ("data 2", "data:2", "batch:data", ""),
    ("data 2, zero 1", "data:2", "batch:data", "--zero 1"),
    ("data 2, zero 3", "data:2", "batch:data", "--zero 3"),
    ("model 2", "model:2", MODEL, ""),
    ("seq 2", "seq:2", "seq:seq", ""),
    ("data 4", "data:4", "batch:data", ""),
    ("data 2, model 2", "data:2,model:2", "batch:data," + MODEL, ""),
    ("data 2, model 4", "data:2,model:4", "batch:data," + MODEL, ""),
]
HIDDEN = [
    ("1 rank", "data:1", "batch:data", ""),
    ("data 2", "data:2", "batch:data", ""),
    ("hidden 2", "model:2", "hidden:model,vocab:model", ""),
    ("data 2, hidden 2", "data:2,model:2", "batch:data,hidden:model,vocab:model", ""),
    ("data 2, zero 1", "data:2", "batch:data", "--zero 1"),
]
MODELS = {
    "gpt small": ("gpt train --layers 4 --width 128 --heads 4 --seq 64 --batch 16", GPT_LAYOUTS),
    "gpt wide": ("gpt train --layers 2 --width 384 --heads 8 --seq 64 --batch 8", GPT_LAYOUTS),
    "gpt long": ("gpt train --layers 2 --width 128 --heads 4 --seq 512 --batch 4", GPT_LAYOUTS),
    "gpt deep": ("gpt train --layers 10 --width 64 --heads 4 --seq 64 --batch 16", GPT_LAYOUTS),
    "gpt modern": ("gpt train --layers 3 --width 128 --heads 4 --kv-heads 2 --rope --norm rms --tie --seq 128 --batch 8", GPT_LAYOUTS[:8]),
    "gpt scanned": ("gpt train --layers 8 --width 128 --heads 4 --seq 64 --batch 16 --scan-layers", GPT_LAYOUTS),
    "gpt experts": ("gpt train --layers 2 --width 128 --heads 4 --seq 64 --batch 16 --experts 4",
                    GPT_LAYOUTS[:4] + [("experts 2", "data:2", "experts:data,batch:data", "")]),
    "gpt stages": ("gpt train --layers 4 --width 128 --heads 4 --seq 64 --batch 16 --stages 2 --micro 4",
                   [("1 rank", "data:1", "batch:data", ""), ("pipe 2", "pipe:2", "stage:pipe", ""),
                    ("pipe 2, data 2", "pipe:2,data:2", "stage:pipe,batch:data", ""),
                    ("data 2", "data:2", "batch:data", "")]),
    "mnist mlp": ("mnist --data digits --batch 256 --hidden 512",
                  [("1 rank", "data:1", "batch:data", ""), ("data 2", "data:2", "batch:data", ""),
                   ("hidden 2", "model:2", "hidden:model", ""),
                   ("data 2, hidden 2", "data:2,model:2", "batch:data,hidden:model", "")]),
    "mnist cnn": ("mnist --data digits --model cnn --batch 64",
                  [("1 rank", "data:1", "batch:data", ""), ("data 2", "data:2", "batch:data", ""),
                   ("rows 2", "space:2", "row:space", ""),
                   ("data 2, rows 2", "data:2,space:2", "batch:data,row:space", "")]),
    "charlm lstm": ("charlm --data text --width 192 --seq 48 --batch 32", HIDDEN),
    "charlm gru": ("charlm --data text --model gru --width 128 --seq 32 --batch 32", HIDDEN),
    "seq2seq lstm": ("seq2seq --model lstm --width 128", HIDDEN),
    "seq2seq transformer": ("seq2seq --width 128 --layers 2", GPT_LAYOUTS[:2] + [("model 2", "model:2", MODEL, ""), GPT_LAYOUTS[6]]),
    "word2vec": ("word2vec --data text --words 500",
                 [("1 rank", "data:1", "batch:data", ""), ("data 2", "data:2", "batch:data", ""),
                  ("vocab 2", "model:2", "vocab:model", "")]),
}
MPI = {"gpt small": [GPT_LAYOUTS[i] for i in (1, 4, 6)], "gpt wide": [GPT_LAYOUTS[i] for i in (1, 4, 7)],
       "gpt scanned": [GPT_LAYOUTS[1]], "gpt long": [GPT_LAYOUTS[5]]}
TEXT_BYTES = 200_000
OWN_SECONDS = 8
QUIET = 0.05  # of all cores, for others
TRIES, PATIENCE = 3, 6  # runs of a cell; seconds of waiting for a quiet machine before each


def ranks_of(mesh):
    return math.prod(int(axis.split(":")[1]) for axis in mesh.split(","))


class Cell:
    """A command of so many ranks, under the name of its layout."""

    def __init__(self, model, name, command, ranks, is_mpi):
        self.model, self.layout, self.is_mpi = model, name + (", MPI" if is_mpi else ""), is_mpi
        self.ranks, self.command = ranks, command
        self.key = f"{model}; {self.layout}"

    @classmethod
    def of(cls, model, program, layout, is_mpi):
        name, mesh, rules, more = layout
        command = [*program.split(), "--mesh", mesh, "--layout", rules, *more.split()]
        return cls(model, name, command, ranks_of(mesh), is_mpi)

    def words(self, *more):
        program = [str(BIN / self.command[0]), *self.command[1:], *map(str, more)]
        return ["mpirun", "--oversubscribe", "-n", str(self.ranks), *program] if self.is_mpi else program


def cells(only):
    every = [Cell.of(model, program, layout, False) for model, (program, layouts) in MODELS.items() for layout in layouts]
    every += [Cell.of(model, MODELS[model][0], layout, True) for model, layouts in MPI.items() for layout in layouts]
    return [cell for cell in every if any(fnmatch.fnmatch(f"{cell.model} {cell.layout}", pattern) for pattern in only)]


def others_seconds():
    """Of processor time that everything else on this machine has had: as fields of /proc/stat, without what this program started."""
    user, nice, system, _, _, irq, soft, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    own = sum(used.ru_utime + used.ru_stime for used in both)
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK") - own


class Others:
    """Their part of the cores since it was made."""

    def __init__(self):
        self.begin, self.used = time.monotonic(), others_seconds()

    def part(self):
        return max(0, others_seconds() - self.used) / (time.monotonic() - self.begin) / os.cpu_count()


def await_quiet():
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        others = Others()
        time.sleep(0.5)
        if others.part() <= QUIET:
            return


def run_quiet(words, folder, tries=TRIES):
    """[(text, part of others)]: until others were quiet meanwhile, or a few times."""
    found = []
    while len(found) < tries and not (found and found[-1][1] <= QUIET):
        await_quiet()
        others = Others()
        text = run(words(), folder)
        found.append((text, others.part()))
    return found


def run(words, folder):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"predict.py: {' '.join(map(str, words))}: {(done.stderr.strip() or 'nothing said').splitlines()[-1]}")
    return done.stdout + done.stderr


def seconds(found, first):
    return float(found[first]) * UNITS[found[first + 1]]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# ---- measuring -----------------------------------------------------------------------------------------


def machine_file(cell, kind):
    """Ranks of one process, and processes of a host, have files of their own: their links differ."""
    return f"./{kind}{f'-mpi{cell.ranks}' if cell.is_mpi else ''}.json"


def calibrate(todo, options, folder):
    """A general file for each way to start ranks that a cell has; what the cells' own file knows is put to it."""
    for name, ranks in sorted({(machine_file(cell, "general"), cell.ranks if cell.is_mpi else 0) for cell in todo}):
        start = ["mpirun", "--oversubscribe", "-n", ranks] if ranks else []
        run([*start, BIN / "weft", "calibrate", "--noisy", "--add", "--seconds", options.seconds, "--out", name], folder)
        own = name.replace("general", "own")
        if (folder / own).exists():
            run([BIN / "weft", "machine", "merge", own, name], folder)
        else:
            shutil.copy(folder / name, folder / own)


def measure_own(cell, folder):
    """Its kernels into the file that knows them."""
    run_quiet(lambda: cell.words("--noisy", "--calibrate-seconds", OWN_SECONDS, "--calibrate", machine_file(cell, "own")), folder)


def train(cell, folder, kind="own", tries=TRIES):
    """Of each run the fastest step, the median, what was predicted of it, and the part of the cores that others had."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        options = ["--steps", 20, "--save-after", "0s", "--fresh", "--run", f"{place}/run", "--machine", machine_file(cell, kind)]
        return [told(text, part) for text, part in run_quiet(lambda: cell.words(*options), folder, tries)]


def told(text, part):
    text = " ".join(text.split())  # lines are wrapped
    ran = RAN.search(text)
    if not ran:
        raise SystemExit(f"predict.py: no comparison in: {text[-400:]}")
    return {"fastest": seconds(ran, 1), "median": seconds(ran, 3), "predicted": seconds(PREDICTED.search(text), 1),
            "others": round(part, 3)}


def measure_round(todo, results, options, folder):
    calibrate(todo, options, folder)
    for cell in todo:
        measure_own(cell, folder)
        found = train(cell, folder)
        results.setdefault(cell.key, []).extend(found)
        best = min(found, key=lambda ran: ran["fastest"])
        say(f"{cell.key}: {1e3 * best['fastest']:.2f} ms, predicted {1e3 * best['predicted']:.2f}; others had "
            f"{100 * best['others']:.0f} % of the cores")
        (folder / "results.json").write_text(json.dumps(results, indent=1))


def make_data(folder):
    if not (folder / "digits").exists():
        run([BIN / "mnist", "draw", "digits"], folder)
    if not (folder / "text").exists():
        root = Path(__file__).resolve().parents[2]
        text = "".join(path.read_text() for path in sorted((root / "docs").glob("*.md")))
        (folder / "text").write_text(text[:TEXT_BYTES])


# ---- what came out -------------------------------------------------------------------------------------


def predict(cell, folder, kind):
    """From a file, of the plan that the cell ran: the one that is made for the file that knows its kernels."""
    return seconds(PLANNED.search(run(cell.words("--dry-run", "--machine", machine_file(cell, kind)), folder)), 1)


def tau(pairs):
    """Kendall's, of two orders of the same."""
    agree = sum(1 if (a[0] - b[0]) * (a[1] - b[1]) > 0 else -1 for a, b in itertools.combinations(pairs, 2))
    return agree / (len(pairs) * (len(pairs) - 1) // 2)


def summary(title, table, at):
    known = [(row[0], row[at], row[2]) for row in table if row[at]]
    errors = sorted(abs(predicted / took - 1) for _, predicted, took in known)
    if not errors:
        return
    taus = []
    for model in MODELS:
        pairs = [(predicted, took) for cell, predicted, took in known if cell.model == model and not cell.is_mpi]
        if len(pairs) > 2:
            taus.append(tau(pairs))
    near = sum(error <= 0.1 for error in errors) / len(errors)
    print(f"{title}: {len(errors)} cells, median error {100 * statistics.median(errors):.1f} %, within 10 %: {100 * near:.0f} %, "
          f"nine of ten within {100 * errors[int(0.9 * (len(errors) - 1))]:.0f} %, worst {100 * errors[-1]:.0f} %; "
          f"Kendall's tau of layouts, mean of models: {statistics.mean(taus) if taus else 1:.2f}")


def text_of(value, took):
    return f"{1e3 * value:.2f} | {value / took:.2f}" if value else " | "


def print_table(table):
    print("| model | layout | fastest step, ms | its own kernels known: predicted | / measured | none known: predicted | / measured |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for cell, own, took, general in table:
        print(f"| {cell.model} | {cell.layout} | {1e3 * took:.2f} | {text_of(own, took)} | {text_of(general, took)} |")
    print()
    summary("own kernels known", table, 1)
    summary("none known", table, 3)


def draw(table, path):
    """Predicted against measured, both logarithmic; the line where they agree, and a tenth to each side."""
    values = [value for _, own, took, _ in table for value in (own, took) if value]
    low, high = math.floor(2 * math.log10(min(values))) / 2, math.ceil(2 * math.log10(max(values))) / 2
    size, edge = 440, 50

    def place(value):
        return edge + (math.log10(value) - low) / (high - low) * (size - 2 * edge)

    def line(factor, style):
        begin, end = 10 ** low, 10 ** high
        return (f'<line x1="{place(begin):.1f}" y1="{size - place(begin * factor):.1f}" x2="{place(end):.1f}" '
                f'y2="{size - place(end * factor):.1f}" {style}/>')

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">',
             f'<rect width="{size}" height="{size}" fill="white"/>', line(1, 'stroke="black"'),
             line(1.1, 'stroke="#bbb" stroke-dasharray="4"'), line(1 / 1.1, 'stroke="#bbb" stroke-dasharray="4"')]
    tick = math.ceil(low)
    while tick <= high:
        at = place(10 ** tick)
        label = f"{10 ** (tick + 3):g} ms"
        parts.append(f'<text x="{at:.1f}" y="{size - edge + 18}" text-anchor="middle">{label}</text>')
        parts.append(f'<text x="{edge - 6}" y="{size - at + 4:.1f}" text-anchor="end">{label}</text>')
        tick += 1
    for cell, own, took, _ in table:
        if own:
            colour = "#c33" if cell.is_mpi else "#36c" if cell.ranks <= 2 else "#393"
            parts.append(f'<circle cx="{place(took):.1f}" cy="{size - place(own):.1f}" r="3" fill="{colour}" fill-opacity="0.7">'
                         f'<title>{cell.key}</title></circle>')
    parts.append(f'<text x="{size / 2}" y="{size - 8}" text-anchor="middle">the fastest step</text>')
    parts.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">predicted</text>')
    parts.append(f'<text x="{edge + 8}" y="{edge}">blue: 1 or 2 ranks; green: more than the 2 cores; red: processes</text></svg>')
    Path(path).write_text("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="cells, as 'gpt wide data*'")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60, help="of each calibration")
    parser.add_argument("--keep", metavar="DIR", help="where files and results stay")
    parser.add_argument("--svg", metavar="FILE", help="draw a picture")
    options = parser.parse_args()
    todo = cells(options.only)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        make_data(folder)
        known = folder / "results.json"
        results = json.loads(known.read_text()) if known.exists() else {}
        for _ in range(options.rounds):
            measure_round(todo, results, options, folder)
        table = [(cell, predict(cell, folder, "own"), min(ran["fastest"] for ran in results[cell.key]),
                  predict(cell, folder, "general")) for cell in todo if cell.key in results]
    print_table(table)
    if options.svg:
        draw(table, options.svg)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""predict.py: what weft_plan_predict says of a step, beside what a run of it takes: ./run bench --predict.

A cell is a program, a model, a layout and ranks. Machines are faster in one second than in the next, by more than what is asked here. So
kernels and steps take turns, and nothing counts but what was least disturbed. In a turn of a cell its own kernels are measured for a
second, and then it trains. All layouts of a model have their turns one behind the other. Of a kernel the fastest figure of all turns
counts, and the fastest of all steps. A probe before each group's turn and behind it tells how much the machine changed.

    ./run bench --predict                         all cells, as a table
    ./run bench --predict --only 'gpt wide*'      those of one model
    ./run bench --predict --keep DIR              files and results stay there; again with the same DIR: turns are added
    ./run bench --predict --keep DIR --minutes 7  models that have the fewest turns first, until the time is over
    ./run bench --predict --keep DIR --turns 0 --svg docs/predicted.svg     from what is there
"""
import argparse
import fnmatch
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import predicted
from bench import Calm, Probe

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "build/bin"
HOSTS, DELAY_LINE = ROOT / "tests/hosts/hosts.sh", ROOT / "build/tests/delay_line"
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
    ("data 8", "data:8", "batch:data", ""),
    ("hidden 2", "model:2", "hidden:model", ""),
    ("vocab 2", "model:2", "vocab:model", ""),
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
# Ranks as processes of this host, and of two hosts whose cables let through so much, after a pause too.
MPI = {"gpt small": [GPT_LAYOUTS[i] for i in (1, 3, 4, 6)], "gpt wide": [GPT_LAYOUTS[i] for i in (1, 4, 7)],
       "gpt scanned": [GPT_LAYOUTS[1]], "gpt long": [GPT_LAYOUTS[5]], "charlm lstm": HIDDEN[1:3]}
TWO_HOSTS = {"gpt small": [GPT_LAYOUTS[i] for i in (1, 4)], "gpt wide": [GPT_LAYOUTS[i] for i in (1, 3)],
             "gpt scanned": [GPT_LAYOUTS[1]], "charlm lstm": [HIDDEN[1]]}
CABLE = ("400mbit", "200us", "even")
TEXT_BYTES = 200_000
TURNS, OWN_SECONDS = 5, 1
STEPS, LONG_S = 22, 0.8  # of a training: so many, and more of short ones
PATIENCE = 6  # seconds of waiting for a quiet machine before a probe


def ranks_of(mesh):
    return math.prod(int(axis.split(":")[1]) for axis in mesh.split(","))


class Cell:
    """A command of so many ranks, under the name of its layout. start: "", "MPI" or "two hosts"."""

    def __init__(self, model, name, command, ranks, start):
        self.start = start
        self.model, self.layout = model, name + (f", {self.start}" if self.start else "")
        self.ranks, self.command = ranks, command
        self.key = f"{model}; {self.layout}"

    @classmethod
    def of(cls, model, program, layout, start):
        name, mesh, rules, more = layout
        command = [*program.split(), "--mesh", mesh, "--layout", rules, *more.split()]
        return cls(model, name, command, ranks_of(mesh), start)

    @property
    def group(self):
        """Those that are measured in one go."""
        return f"{self.model} {self.start}"

    def words(self, *more):
        return [*starting(self.start, self.ranks), str(BIN / self.command[0]), *self.command[1:], *map(str, more)]


def starting(start, ranks):
    return {"": [], "MPI": ["mpirun", "--oversubscribe", "-n", str(ranks)], "two hosts": [str(HOSTS), "mpirun", "2", str(ranks)]}[start]


def cells(only):
    lists = {"": {model: layouts for model, (_, layouts) in MODELS.items()}, "MPI": MPI, "two hosts": TWO_HOSTS}
    every = [Cell.of(model, MODELS[model][0], layout, start) for start, models in lists.items()
             for model, layouts in models.items() for layout in layouts]
    return [cell for cell in every if any(fnmatch.fnmatch(f"{cell.model} {cell.layout}", pattern) for pattern in only)]


class TwoHosts:
    """Where any cell needs them: two hosts, as long as this is open."""

    def __init__(self, todo):
        self.needed = any(cell.start == "two hosts" for cell in todo)

    def __enter__(self):
        if not self.needed:
            return
        os.environ.update(HOSTS_NAME=f"predict-{os.getpid()}", HOSTS_DELAY_LINE=str(DELAY_LINE))
        run([HOSTS, "up", 2], "/")
        for host in ("host0", "host1"):
            run([HOSTS, "slow", host, *CABLE], "/")

    def __exit__(self, *_):
        if self.needed:
            run([HOSTS, "down"], "/")


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
    """Ranks of one process, and processes of one host or two, have general files of their own: their links differ. A cell has its own."""
    way = {"": "", "MPI": f"-mpi{cell.ranks}", "two hosts": f"-hosts{cell.ranks}"}[cell.start]
    return f"./general{way}.json" if kind == "general" else f"./own/{re.sub('[^a-z0-9]+', '-', cell.key.lower())}.json"


def calibrate(todo, options, folder):
    """A general file for each way to start ranks that a cell has."""
    for name, start, ranks in sorted({(machine_file(cell, "general"), cell.start, cell.ranks if cell.start else 0) for cell in todo}):
        run([*starting(start, ranks), BIN / "weft", "calibrate", "--noisy", "--add", "--seconds", options.seconds, "--out", name], folder)


def measure_own(cell, folder):
    """The cell's kernels as they are now. Of those that were measured before the faster figure stays."""
    own = folder / machine_file(cell, "own")
    if not own.exists():
        own.parent.mkdir(exist_ok=True)
        shutil.copy(folder / machine_file(cell, "general"), own)
    run(cell.words("--noisy", "--calibrate-seconds", OWN_SECONDS, "--calibrate", machine_file(cell, "own")), folder)


def train(cell, folder, steps, kind="own"):
    """The mean of the fastest quarter of so many steps; what the run tells: the fastest, the median, and what was predicted."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        options = ["--steps", steps, "--save-after", "0s", "--fresh", "--run", f"{place}/run", "--machine", machine_file(cell, kind)]
        text = " ".join(run(cell.words(*options), folder).split())  # lines are wrapped
        lines = map(json.loads, Path(f"{place}/run/metrics.jsonl").read_text().splitlines())
        took = [line["ms"] / 1e3 for line in lines if "ms" in line]
    ran = RAN.search(text)
    if not ran:
        raise SystemExit(f"predict.py: no comparison in: {text[-400:]}")
    quarter = sorted(took[1:])[:(len(took) + 2) // 4]
    return {"fastest": seconds(ran, 1), "median": seconds(ran, 3), "predicted": seconds(PREDICTED.search(text), 1),
            "seconds": sum(quarter) / len(quarter)}


def more_steps(found):
    """For a step so short that STEPS of it tell little."""
    return min(1000, max(STEPS, int(LONG_S / found["seconds"])))


def take_turn(cell, turns, folder):
    """Few short steps are over before the thread that reads has filled what it reads ahead: then more are run, and count."""
    steps = more_steps(turns[-1]) if turns else STEPS
    measure_own(cell, folder)
    found = train(cell, folder, steps)
    if more_steps(found) > 2 * steps:
        found = train(cell, folder, more_steps(found))
    return found


def measure_all(todo, results, options, folder):
    """Group by group, those with the fewest turns first."""
    bench_probe, calm = Probe(ROOT / "build/bin/bench"), Calm(PATIENCE)
    end = time.monotonic() + 60 * options.minutes if options.minutes else math.inf

    def probe():
        calm.begin()
        return bench_probe.measure(calm)

    for _ in range(options.turns):
        grouped = {}
        for cell in todo:
            grouped.setdefault(cell.group, []).append(cell)
        for group in sorted(grouped.values(), key=lambda of: min(len(results.get(cell.key, [])) for cell in of)):
            if time.monotonic() > end:
                return
            go, before = round(time.time()), probe()  # turns of one go are of one machine
            for cell in group:
                turns = results.setdefault(cell.key, [])
                turns.append({"go": go, **take_turn(cell, turns, folder)})
                say(f"{cell.key}: " + ", ".join(f"{1e3 * turn['seconds']:.2f}" for turn in turns) + " ms")
            after = probe()
            moved = max(abs(after[kind] / before[kind] - 1) for kind in after)
            for cell in group:
                results[cell.key][-1].update(moved=round(moved, 3), **after)
            (folder / "results.json").write_text(json.dumps(results, indent=1))


def make_data(folder):
    if not (folder / "digits").exists():
        run([BIN / "mnist", "draw", "digits"], folder)
    if not (folder / "text").exists():
        text = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
        (folder / "text").write_text(text[:TEXT_BYTES])


# ---- what came out -------------------------------------------------------------------------------------


def predict_generally(cell, folder):
    """From the general file, of the plan that the cell ran."""
    return seconds(PLANNED.search(run(cell.words("--dry-run", "--machine", machine_file(cell, "general")), folder)), 1)


def rows_of(todo, results, options, folder):
    return [predicted.Row(cell.model, cell.layout, cell.start, cell.ranks, results[cell.key],
                          predict_generally(cell, folder) if options.general else None)
            for cell in todo if results.get(cell.key)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="cells, as 'gpt wide data*'")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--minutes", type=float, help="begin no model later; those with the fewest turns come first")
    parser.add_argument("--seconds", type=int, default=60, help="of a calibration; 0: take the files that are there")
    parser.add_argument("--keep", metavar="DIR", help="where files and results stay")
    parser.add_argument("--general", action="store_true", help="predict from a file without the cells' own kernels, too")
    parser.add_argument("--svg", metavar="FILE", help="draw a picture")
    options = parser.parse_args()
    todo = cells(options.only)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        make_data(folder)
        known = folder / "results.json"
        results = json.loads(known.read_text()) if known.exists() else {}
        with TwoHosts(todo if options.turns else []):
            if options.turns and options.seconds:
                calibrate(todo, options, folder)
            measure_all(todo, results, options, folder)
        rows = rows_of(todo, results, options, folder)
    predicted.print_table(rows)
    if options.svg:
        predicted.draw(rows, options.svg)


if __name__ == "__main__":
    main()

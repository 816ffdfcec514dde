#!/usr/bin/env python3
"""predict.py: what weft_plan_predict says of a step, beside what a run of it takes: ./run bench --predict.

A cell is a model, a layout and a number of ranks. This machine is calibrated once, by `weft calibrate`, with none of the cells'
own kernels; then each cell trains for twenty steps, and prints both figures itself (gpt train --machine). The probes of bench.py run
before and after each cell: where they differ by more than a tenth something else used the machine, and the cell is measured
again, and left out after three times.

    ./run bench --predict                    all cells, as a table
    ./run bench --predict --only 'wide*'     those of one model
    ./run bench --predict --own              also with each cell's own kernels measured
"""
import argparse
import fnmatch
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import MOVED, Calm, Probe, moved
from process import Worker

BIN = Path(__file__).resolve().parents[2] / "build/bin"
LINE = re.compile(r"predicted to take ([0-9.e+-]+) (us|ms|s); the median of steps .* is ([0-9.e+-]+) (us|ms|s)")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
TRIES = 3

MODELS = {
    "small": "--layers 4 --width 128 --heads 4 --seq 64 --batch 16",
    "wide": "--layers 2 --width 512 --heads 8 --seq 128 --batch 8",
    "long": "--layers 2 --width 256 --heads 4 --seq 512 --batch 4",
    "scanned": "--layers 12 --width 128 --heads 4 --seq 64 --batch 16 --scan-layers",
    "experts": "--layers 2 --width 128 --heads 4 --seq 64 --batch 16 --experts 4",
    "stages": "--layers 4 --width 128 --heads 4 --seq 64 --batch 16 --stages 2 --micro 4",
}
MODEL = "hidden:model,heads:model,vocab:model"
# name, mesh, layout, what else
LAYOUTS = [
    ("one rank", "data:1", "batch:data", ""),
    ("data 2", "data:2", "batch:data", ""),
    ("data 2, zero 1", "data:2", "batch:data", "--zero 1"),
    ("data 2, zero 3", "data:2", "batch:data", "--zero 3"),
    ("model 2", "model:2", MODEL, ""),
    ("seq 2", "seq:2", "seq:seq", ""),
    ("data 4", "data:4", "batch:data", ""),
    ("data 2, model 2", "data:2,model:2", "batch:data," + MODEL, ""),
]
OF_MODEL = {"experts": [("experts 2", "data:2", "experts:data,batch:data", "")],
            "stages": [("pipe 2", "pipe:2", "stage:pipe", "")]}


def cells(only):
    for name, model in MODELS.items():
        layouts = LAYOUTS + OF_MODEL.get(name, [])
        for layout in layouts:
            if any(fnmatch.fnmatch(f"{name} {layout[0]}", pattern) for pattern in only):
                yield name, model, layout


def run(*words, folder):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"predict.py: {' '.join(map(str, words))}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout + done.stderr


def measure(model, layout, machine, folder):
    """Seconds predicted and measured."""
    _, mesh, rules, more = layout
    text = run(BIN / "gpt", "train", *model.split(), "--mesh", mesh, "--layout", rules, *more.split(), "--steps", "20",
               "--save-after", "0s", "--run", tempfile.mkdtemp(dir=folder), "--machine", machine, folder=folder)
    found = LINE.search(text)
    if not found:
        sys.exit(f"predict.py: no prediction in: {text[-400:]}")
    return float(found[1]) * UNITS[found[2]], float(found[3]) * UNITS[found[4]]


def quiet(probe, calm, model, layout, machine, folder):
    """The same between two probes that agree; None: they never did."""
    for _ in range(TRIES):
        before = probe.measure(calm)
        both = measure(model, layout, machine, folder)
        if moved(before, probe.measure(calm)) <= MOVED:
            return both
    return None


def tau(pairs):
    """Kendall's, of two orders of the same."""
    agree = sum(1 if (a[0] - b[0]) * (a[1] - b[1]) > 0 else -1 for a, b in itertools.combinations(pairs, 2))
    n = len(pairs) * (len(pairs) - 1) // 2
    return agree / n if n else 1.0


def summary(title, results):
    errors = sorted(abs(p / m - 1) for p, m in results.values())
    if not errors:
        return
    taus = []
    for name in MODELS:
        pairs = [both for (model, _), both in results.items() if model == name]
        if len(pairs) > 2:
            taus.append(tau(pairs))
    near = sum(e <= 0.1 for e in errors) / len(errors)
    print(f"{title}: {len(errors)} cells, median error {100 * statistics.median(errors):.1f} %, within 10 %: {100 * near:.0f} %, "
          f"worst {100 * errors[-1]:.0f} %; Kendall's tau of layouts, mean of models: {statistics.mean(taus) if taus else 1:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="cells, as 'wide data*'")
    parser.add_argument("--own", action="store_true", help="also with each cell's own kernels measured")
    parser.add_argument("--seconds", type=int, default=60, help="of calibration")
    parser.add_argument("--noisy", action="store_true", help="calibrate on a machine that others use too")
    options = parser.parse_args()
    results, own = {}, {}
    probe, calm = Probe(BIN / "bench"), Calm(30)
    with tempfile.TemporaryDirectory() as folder:
        noisy = ["--noisy"] if options.noisy else []
        run(BIN / "weft", "calibrate", *noisy, "--seconds", options.seconds, "--out", "here.json", folder=folder)
        print("| model | layout | predicted ms | measured ms | predicted / measured |\n| --- | --- | --- | --- | --- |")
        for name, model, layout in cells(options.only):
            both = quiet(probe, calm, model, layout, "./here.json", folder)
            if both is None:
                print(f"| {name} | {layout[0]} | | the machine was busy | |", flush=True)
                continue
            results[name, layout[0]] = both
            print(f"| {name} | {layout[0]} | {1e3 * both[0]:.1f} | {1e3 * both[1]:.1f} | {both[0] / both[1]:.2f} |", flush=True)
            if not options.own:
                continue
            run(BIN / "gpt", "train", "--dry-run", "--calibrate", "own.json", *noisy, *model.split(), "--mesh", layout[1], "--layout", layout[2],
                *layout[3].split(), folder=folder)
            again = quiet(probe, calm, model, layout, "./own.json", folder)
            if again:
                own[name, layout[0]] = again
                print(f"| | with its own kernels | {1e3 * again[0]:.1f} | {1e3 * again[1]:.1f} | {again[0] / again[1]:.2f} |", flush=True)
    summary("general machine file", results)
    summary("with the cells' own kernels", own)


if __name__ == "__main__":
    try:
        main()
    finally:
        for left in list(Worker.alive):
            left.end()

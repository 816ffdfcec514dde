#!/usr/bin/env python3
"""chosen.py: where the choice of a search stands among layouts that are measured: ./run bench --chosen.

A group is a program, a number of ranks, and how they are started: as threads, under mpirun, or on two hosts with slow links. This
machine is calibrated, the program's own search is asked for the quickest choice, and that and the group's layouts train for
twenty steps each, one after the other, in several rounds. Others on the machine make times longer, and nothing makes them shorter. So of
each the fastest step of all rounds counts. Data parallel is one of the layouts of each group.

    ./run bench --chosen                              all groups, as a table
    ./run bench --chosen --only 'gpt 2*' --rounds 2   those of one program and number of ranks
    ./run bench --chosen --keep DIR                   files, choices and results stay there; again with the same DIR: rounds are added
    ./run bench --chosen --keep DIR --rounds 0        the table of what is there
    ./run bench --chosen --list                       what would be measured
"""
import argparse
import fnmatch
import json
import math
import shlex
import tempfile
from pathlib import Path

import predict

MODEL, HIDDEN = predict.MODEL, "hidden:model,vocab:model"
CHOSEN = "chosen"
NEAR = 0.05

# Of each program: its command, and layouts by the number of ranks. The first of each number is data parallel.
PROGRAMS = {
    "gpt": ("gpt train --layers 4 --width 128 --heads 4 --seq 64 --batch 16", {
        1: [("data 1", "data:1", "batch:data", ""), ("recompute", "data:1", "batch:data", "--recompute"),
            ("2 parts", "data:1", "batch:data", "--accumulate 2")],
        2: [("data 2", "data:2", "batch:data", ""), ("zero 1", "data:2", "batch:data", "--zero 1"),
            ("zero 3", "data:2", "batch:data", "--zero 3"), ("model 2", "model:2", MODEL, ""), ("seq 2", "seq:2", "seq:seq", ""),
            ("pipe 2", "pipe:2", "stage:pipe", "--stages 2 --micro 4")],
        4: [("data 4", "data:4", "batch:data", ""), ("zero 1", "data:4", "batch:data", "--zero 1"),
            ("data 2, model 2", "data:2,model:2", "batch:data," + MODEL, ""), ("model 4", "model:4", MODEL, ""),
            ("data 2, seq 2", "data:2,seq:2", "batch:data,seq:seq", ""),
            ("pipe 2, data 2", "pipe:2,data:2", "stage:pipe,batch:data", "--stages 2 --micro 4")],
        8: [("data 8", "data:8", "batch:data", ""), ("data 4, model 2", "data:4,model:2", "batch:data," + MODEL, ""),
            ("data 2, model 4", "data:2,model:4", "batch:data," + MODEL, "")],
    }),
    "mnist cnn": ("mnist --data digits --model cnn --batch 64", {
        2: [("data 2", "data:2", "batch:data", ""), ("rows 2", "space:2", "row:space", ""),
            ("zero 1", "data:2", "batch:data", "--zero 1")],
        4: [("data 4", "data:4", "batch:data", ""), ("data 2, rows 2", "data:2,space:2", "batch:data,row:space", ""),
            ("rows 4", "space:4", "row:space", ""), ("zero 1", "data:4", "batch:data", "--zero 1")],
    }),
    "charlm": ("charlm --data text --width 192 --seq 48 --batch 32", {
        2: [("data 2", "data:2", "batch:data", ""), ("hidden 2", "model:2", HIDDEN, ""),
            ("zero 1", "data:2", "batch:data", "--zero 1")],
        4: [("data 4", "data:4", "batch:data", ""), ("data 2, hidden 2", "data:2,model:2", "batch:data," + HIDDEN, ""),
            ("hidden 4", "model:4", HIDDEN, ""), ("zero 1", "data:4", "batch:data", "--zero 1")],
    }),
}
STARTS = {"threads": {name: tuple(layouts) for name, (_, layouts) in PROGRAMS.items()},
          "MPI": {"gpt": (2, 4), "mnist cnn": (2,), "charlm": (2,)},
          "two hosts": {"gpt": (2,), "mnist cnn": (2,), "charlm": (2,)}}


def plan_of(command):
    """Words that make the plan: on one rank every mesh is the same one."""
    words = list(command)
    while "--mesh" in words and predict.ranks_of(words[words.index("--mesh") + 1]) == 1:
        for option in ("--mesh", "--layout"):
            at = words.index(option)
            del words[at:at + 2]
    return sorted(words)


class Group:
    def __init__(self, name, ranks, start):
        self.name, self.ranks, self.start = name, ranks, "" if start == "threads" else start
        self.program, layouts = PROGRAMS[name]
        self.text = f"{name} {ranks} {start}"
        self.cells = [self.cell_of(layout) for layout in layouts[ranks]]
        self.data = self.cells[0]

    def cell_of(self, layout):
        cell = predict.Cell.of(self.name, self.program, layout, self.start)
        cell.key = f"{self.text}; {layout[0]}"
        return cell

    def search(self, folder, plans):
        """The command of the choice, without the machine."""
        file = predict.machine_file(self.data, "general")
        first, *options = self.program.split()
        verb = ["search", *options[1:]] if options[0] == "train" else ["search", *options]
        text = predict.run([predict.BIN / first, *verb, "--ranks", self.ranks, "--machine", file, "--plans", plans, "--json"], folder)
        words = shlex.split(json.loads(text[text.index("{"):])["chosen"]["command"])
        at = words.index("--machine")
        return words[:at] + words[at + 2:]

    def take(self, command):
        """The search's choice becomes the last of its cells. Where it is one of the layouts, it is that cell."""
        for cell in self.cells:
            if plan_of(cell.command) == plan_of(command):
                self.cells.append(cell)
                return
        cell = predict.Cell(self.name, CHOSEN, command, self.ranks, self.start)
        cell.key = f"{self.text}; {CHOSEN}; {shlex.join(command)}"
        self.cells.append(cell)


def groups(only):
    every = [Group(name, ranks, start) for start, programs in STARTS.items() for name, all_ranks in programs.items() for ranks in all_ranks]
    return [group for group in every if any(fnmatch.fnmatch(group.text, pattern) for pattern in only)]


def read(path):
    return json.loads(path.read_text()) if path.exists() else {}


def choose(todo, plans, folder):
    """What was chosen before stays: rounds are added to the same cells."""
    choices = read(folder / "choices.json")
    for group in todo:
        if group.text not in choices:
            choices[group.text] = group.search(folder, plans)
            (folder / "choices.json").write_text(json.dumps(choices, indent=1))
        group.take(choices[group.text])


def measure_round(todo, results, folder):
    for group in todo:
        for cell in dict.fromkeys(group.cells):
            found = predict.train(cell, folder, 20, "general")
            results.setdefault(cell.key, []).append(found)
            predict.say(f"{cell.key}: {1e3 * found['fastest']:.2f} ms")
        (folder / "chosen.json").write_text(json.dumps(results, indent=1))


# ---- what came out -------------------------------------------------------------------------------------


def fastest(results, cell):
    return min(run["fastest"] for run in results[cell.key])


def name_of(cell):
    words = cell.command
    return " ".join(words[words.index("--mesh"):]) if "--mesh" in words else "one rank"


def standing(group, results):
    """Of a group: the chosen cell, its seconds, the quickest cell's, data parallel's, and how many are quicker than the chosen one."""
    took = {cell: fastest(results, cell) for cell in group.cells}
    chosen = group.cells[-1]
    best = min(took, key=took.get)
    return chosen, took[chosen], best, took[best], took[group.data], sum(other < took[chosen] for other in took.values())


def print_table(todo, results):
    if not todo:
        predict.say("no group is measured yet: give --rounds")
        return
    print("| program, ranks | chosen | its fastest step, ms | the best | ms | chosen / best | chosen / data parallel | quicker ones |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    beside_best, beside_data = [], []
    for group in todo:
        chosen, took, best, least, data, quicker = standing(group, results)
        beside_best.append(took / least)
        beside_data.append(took / data)
        print(f"| {group.text} | `{name_of(chosen)}` | {1e3 * took:.2f} | {best.layout} | {1e3 * least:.2f} | {took / least:.2f} | "
              f"{took / data:.2f} | {quicker} of {len(set(group.cells)) - 1} |")
    near = sum(ratio <= 1 + NEAR for ratio in beside_best)
    print(f"\n{sum(len(set(group.cells)) for group in todo)} cells in {len(todo)} groups: the choice is within {100 * NEAR:.0f} % of the best "
          f"in {near}; mean {mean(beside_best):.3f} of the best, worst {max(beside_best):.2f}; mean {mean(beside_data):.3f} of data "
          f"parallel, worst {max(beside_data):.2f}")


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="groups, as 'gpt 2 MPI' or 'charlm*'")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60, help="of each calibration")
    parser.add_argument("--plans", type=int, default=100, help="that a search may make")
    parser.add_argument("--keep", metavar="DIR", help="where files and results stay")
    parser.add_argument("--list", action="store_true", help="print what would be measured")
    options = parser.parse_args()
    todo = groups(options.only)
    if options.list:
        for group in todo:
            print(f"{group.text}: {CHOSEN}, {', '.join(cell.layout for cell in group.cells)}")
        print(f"{sum(len(group.cells) + 1 for group in todo)} cells in {len(todo)} groups")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        predict.make_data(folder)
        results = read(folder / "chosen.json")
        new = [group.data for group in todo if not (folder / predict.machine_file(group.data, "general")).exists()]
        with predict.TwoHosts([group.data for group in todo] if new or options.rounds else []):
            predict.calibrate(new, options, folder)
            choose(todo, options.plans, folder)
            for _ in range(options.rounds):
                measure_round(todo, results, folder)
        print_table([group for group in todo if all(cell.key in results for cell in group.cells)], results)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""bench.py: Weft, PyTorch and JAX on the same work, in one interleaved run.

Workers are processes that live through a row; one is measured, the others are stopped (SIGSTOP), and so on in turn for
--rounds rounds. Before anything is timed all do the same steps from the same numbers, and what they computed is
compared. Two probes with nothing of anybody's in them run before each row and after each of its rounds: where the best of one half
is not within a tenth of the other's, the machine was not the same machine, and the row is no result. protocol.h says how workers are spoken to.
"""
import argparse
import datetime
import fnmatch
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import page
import rows
from process import Failed, Worker, first_line, hurry, memory_left
from peers import Peers

HERE = Path(__file__).resolve().parent
SPARE = 3 << 30  # bytes of memory that have to be there before another worker is started
TURN = 0.1  # seconds that a worker is measured in a round, or one call if that takes longer
BLOCK = 0.002  # seconds of the calls that are timed together
PROBED = 40  # blocks of 2 to 3 milliseconds: as long a turn as a worker's
MOVED = 0.10  # of a probe
QUIET = 0.9  # of the cores is idle where nobody else is at work


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# ---- the machine --------------------------------------------------------------------------------------


def machine(cores):
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"processor": model, "cores": len(cores), "system": platform.platform(), "python": platform.python_version(),
            "priority": os.getpriority(os.PRIO_PROCESS, 0)}


def commit():
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def idle_share():
    """Of the cores, in the last fifth of a second: while all workers are stopped, what others leave."""
    def counts():
        words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        return int(words[3]) + int(words[4]), sum(map(int, words[:8]))
    idle, total = counts()
    time.sleep(0.2)
    idle_now, total_now = counts()
    return (idle_now - idle) / max(1, total_now - total)


class Calm:
    """Waits while others use the machine, in all no longer than `patience` seconds a row."""

    def __init__(self, patience):
        self.patience = self.left = patience

    def begin(self):
        self.left = self.patience

    def wait(self):
        begin = time.monotonic()
        while idle_share() < QUIET and time.monotonic() - begin < self.left:
            pass
        self.left -= time.monotonic() - begin


class Probe:
    """What the machine gives: the best of a few blocks, in operations and bytes a second."""

    def __init__(self, programs):
        self.worker = Worker("probe", [str(programs / "bench_probe")], {})
        self.amount = self.worker.ask("about")

    def measure(self, calm):
        calm.wait()
        found = {}
        for kind, calls in (("product", 100), ("stream", 4)):
            self.worker.ask(f"open {kind}")
            self.worker.ask(f"look {calls}")
            wall = self.worker.ask(f"time {PROBED} {calls}")["wall"]
            found[kind] = self.amount[kind] * calls / min(wall)
        self.worker.stop()
        return found


def best(probes):
    return {kind: max(p[kind] for p in probes) for kind in probes[0]}


def halves(probes):
    """What the machine gave at its best in the first rounds, and in the last: a minimum of rounds is held to no less."""
    half = len(probes) // 2
    return {"before": best(probes[:half]), "after": best(probes[half:])}


def moved(before, after):
    return max(abs(after[kind] / before[kind] - 1) for kind in before)


# ---- a row --------------------------------------------------------------------------------------------


class Workers:
    """Of the row at hand. Those of single ops live on into the next row; a training's begin afresh, for its memory."""

    def __init__(self, peers, environment):
        self.peers, self.environment, self.group, self.kept = peers, environment, None, {}

    def _get(self, row, contender):
        if row.group != self.group:
            self.end()
            self.group = row.group
        if contender.name in self.kept:
            return self.kept[contender.name]
        command = self.peers.command(contender)
        if memory_left() < SPARE:
            raise Failed(f"less than {SPARE >> 30} GiB of memory were left")
        self.kept[contender.name] = Worker(contender.name, command, {**self.environment, **contender.environment})
        return self.kept[contender.name]

    def open(self, row, contender):
        """The worker with the row open and a few steps done, stopped, and what it says; or why there is none."""
        try:
            worker = self._get(row, contender)
            told = {"about": worker.ask("about")}
            opened = worker.ask(f"open {row.asked}")
            if "skipped" in opened:
                worker.stop()
                return None, {"skipped": opened["skipped"]}
            told.update(open=opened["seconds"], **worker.ask(f"look {row.steps}"))
            worker.forget_peak()
            worker.plan(TURN, BLOCK)
            worker.stop()
            return worker, told
        except Failed as why:
            self.drop(contender.name)
            return None, {"skipped": str(why)}

    def drop(self, name):
        if name in self.kept:
            self.kept.pop(name).end()

    def close(self, row):
        if row.is_training:
            self.end()
        for name, worker in list(self.kept.items()):
            try:
                worker.ask("close")
                worker.stop()
            except Failed:
                self.drop(name)

    def end(self):
        for name in list(self.kept):
            self.drop(name)


def open_all(row, contenders, workers):
    found, told = {}, {}
    for c in contenders:
        worker, told[c.name] = workers.open(row, c)
        if worker:
            found[c.name] = worker
        say(f"  {c.name}: " + (told[c.name].get("skipped") or "ready, " + shown(told[c.name]["numbers"])))
    return found, told


def shown(numbers):
    some = numbers if len(numbers) <= 6 else numbers[:3] + ["..."] + numbers[-3:]
    return " ".join(n if n == "..." else f"{n:.7g}" for n in some)


def disagreement(row, told):
    """A sentence, when workers did not compute the same."""
    numbers = {name: t["numbers"] for name, t in told.items() if "numbers" in t}
    if not numbers:
        return "no worker could do it"
    first = next(iter(numbers))
    scale = max(abs(n) for n in numbers[first]) or 1.0
    for name, others in numbers.items():
        apart = max(abs(a - b) for a, b in zip(numbers[first], others)) / scale
        if len(others) != len(numbers[first]) or not apart <= row.apart:
            return f"{name} computed {shown(others)} where {first} computed {shown(numbers[first])}, {apart:.1e} apart"
    return None


def take_turn(worker, told, times):
    """One worker, while the others are stopped. One that fails is out, with the reason."""
    t = times.setdefault(worker.name, {"wall": [], "cpu": 0.0, "calls": 0})
    began = worker.cpu()
    try:
        blocks = worker.ask(f"time {worker.blocks} {worker.calls}")["wall"]
    except Failed as why:
        told[worker.name] = {"skipped": str(why)}
        del times[worker.name]
        worker.end()
        return
    t["cpu"] += worker.cpu() - began
    t["calls"] += worker.blocks * worker.calls
    t["wall"] += [block / worker.calls for block in blocks]
    worker.stop()


def interleave(workers, told, rounds, between):
    """name -> seconds a call of every block, and CPU seconds a call."""
    times, names = {}, list(workers)
    for r in range(rounds):
        for name in names[r % len(names):] + names[:r % len(names)]:
            if "skipped" not in told[name]:
                take_turn(workers[name], told, times)
        between()
    return {name: {"wall": t["wall"], "cpu": t["cpu"] / t["calls"]} for name, t in times.items()}


def start_each(contenders, peers, environment, told, rounds, between):
    """The same of processes that begin with nothing: seconds until their first line."""
    times = {}
    for r in range(rounds):
        for c in contenders[r % len(contenders):] + contenders[:r % len(contenders)]:
            if "skipped" in told.get(c.name, {}):
                continue
            try:
                wall, cpu, answer = first_line(peers.command(c), {**environment, **c.environment})
            except Failed as why:
                told[c.name] = {"skipped": str(why)}
                times.pop(c.name, None)
                continue
            told.setdefault(c.name, {"numbers": [answer["loss"]]})
            t = times.setdefault(c.name, {"wall": [], "cpu": 0.0})
            t["wall"].append(wall)
            t["cpu"] += cpu / rounds
            say(f"  {c.name}: {wall:.3f} s")
        between()
    return times


def summary(row, told, times):
    """Each contender's figures, and the ratio that the row is about."""
    for name, t in times.items():
        told[name].update(minimum=min(t["wall"]), median=statistics.median(t["wall"]), cpu=t["cpu"],
                          samples=len(t["wall"]))
    for name, t in told.items():
        base = row.base(name)
        if "minimum" in t and "minimum" in told.get(base, {}):
            ratio = t["minimum"] / told[base]["minimum"]
            t["ratio"] = 1 / ratio if row.is_efficiency else ratio
    return told


def times_of(row, contenders, workers, opened, told, rounds, between):
    if row.is_start:
        return start_each(contenders, workers.peers, workers.environment, told, rounds, between)
    return interleave(opened, told, rounds, between)


def measure(row, contenders, workers, probe, calm, rounds, tries):
    record = {"name": row.name, "what": row.what, "load": os.getloadavg()[0], "commit": commit(), "rounds": rounds,
              "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")}
    opened, told = ({}, {}) if row.is_start else open_all(row, contenders, workers)
    record["why"] = None if row.is_start else disagreement(row, told)
    calm.begin()
    for attempt in range(tries if record["why"] is None else 0):
        probes = [probe.measure(calm)]
        times = times_of(row, contenders, workers, opened, told, rounds, lambda: probes.append(probe.measure(calm)))
        told = summary(row, told, times)
        record["probes"] = halves(probes)
        record["moved"] = moved(**record["probes"])
        record["why"] = None if record["moved"] <= MOVED else f"the probes moved by {100 * record['moved']:.0f} %"
        if record["why"] is None:
            break
        say(f"  {record['why']}" + (": once more" if attempt + 1 < tries else ""))
    for name, worker in opened.items():
        if row.is_training and worker in Worker.alive:
            told[name]["peak"] = worker.peak()
    workers.close(row)
    return {**record, "contenders": told, "is_result": record["why"] is None}


# ---- the command ----------------------------------------------------------------------------------------


def parse():
    p = argparse.ArgumentParser(prog="./run bench", description=__doc__.splitlines()[0])
    p.add_argument("--only", action="append", metavar="ROW", help="these rows (a pattern: 'linear*'); may be repeated")
    p.add_argument("--rounds", type=int, help="of each row (7; of rows that start processes, fewer)")
    p.add_argument("--tries", type=int, default=2, help="how often a row is measured while probes move (2)")
    p.add_argument("--wait", type=float, default=30, help="seconds a row waits, at most, for others to be quiet (30)")
    p.add_argument("--cores", type=int, default=2, help="that everybody may use (2)")
    p.add_argument("--json", metavar="FILE", help="write what was measured; rows that FILE has already are replaced")
    p.add_argument("--also", action="append", default=[], metavar="NAME=PROGRAM",
                   help="another build of bench_weft, measured beside this one")
    p.add_argument("--list", action="store_true", help="say which rows there are")
    p.add_argument("--page", metavar="FILE", help="measure nothing; make the tables of docs/performance.md from FILE")
    p.add_argument("--programs", default="build/bin/bench", help=argparse.SUPPRESS)
    p.add_argument("--peers", default="build-bench/peers", help=argparse.SUPPRESS)
    return p.parse_args()


def chosen(patterns):
    if not patterns:
        return rows.ROWS
    found = [row for row in rows.ROWS if any(fnmatch.fnmatch(row.name, p) for p in patterns)]
    unknown = [p for p in patterns if not any(fnmatch.fnmatch(row.name, p) for row in rows.ROWS)]
    if unknown:
        sys.exit(f"bench: no row is called {unknown[0]}; there are {' '.join(row.name for row in rows.ROWS)}")
    return found


def keep(path, about, records):
    """Rows of another day stay, where they were not measured again."""
    path = Path(path)
    old = json.loads(path.read_text())["rows"] if path.exists() else []
    new = {r["name"]: r for r in old} | {r["name"]: r for r in records}
    order = [row.name for row in rows.ROWS]
    path.write_text(json.dumps({**about, "rows": sorted(new.values(), key=lambda r: order.index(r["name"]))}, indent=1))


def main():
    a = parse()
    if a.list:
        for row in rows.ROWS:
            print(f"{row.name:24} {row.what}")
        return 0
    if a.page:
        return page.write(HERE.parents[1] / "docs/performance.md", json.loads(Path(a.page).read_text()))
    wanted = chosen(a.only)
    cores = sorted(os.sched_getaffinity(0))[:a.cores]
    os.sched_setaffinity(0, cores)
    hurry(os.getpid())
    environment = {**os.environ, "OMP_NUM_THREADS": str(len(cores)), "MKL_NUM_THREADS": str(len(cores))}
    programs, also = Path(a.programs).resolve(), dict(text.split("=", 1) for text in a.also)
    peers = Peers(Path(a.peers).resolve(), programs, HERE, say)
    workers = Workers(peers, environment)
    probe, calm, records = Probe(programs), Calm(a.wait), []
    for row in wanted:
        contenders = rows.contenders(row, also)
        peers.make(contenders)
        say(f"{row.name}: {row.what}")
        record = measure(row, contenders, workers, probe, calm, a.rounds or row.rounds, max(1, a.tries))
        records.append(record)
        print(page.text(row, record), flush=True)
        if a.json:
            keep(a.json, {"machine": machine(cores)}, records)
    kept = json.loads(Path(a.json).read_text())["rows"] if a.json else records
    print("best peer / Weft, geometric mean:", page.geometric_mean(kept))
    refused = [r["name"] for r in records if not r["is_result"]]
    if refused:
        print("not a result:", " ".join(refused))
    return 1 if refused else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        sys.exit(main())
    finally:
        for left in list(Worker.alive):
            left.end()

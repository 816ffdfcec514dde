#!/usr/bin/env python3
"""stranger.py: what a step takes while a process of somebody else's is busy on one of the cores.

    python3 tests/bench/stranger.py [--only ROW] [--where 0 any 1] [--seconds 1.5] [--also NAME=PROGRAM]

Nobody has a priority. The busy process may be on one core, by its number, or on any. Workers take turns, and the mean of a turn
counts: it is told beside the quiet median, and so is which share of the cores nobody used. `run` and `wait` are the milliseconds a
step for which each thread had a core, and waited for one.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from process import Worker

BUSY = "while True: pass"


def idle():
    words = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return words[3] + words[4], sum(words)


def threads(pid):
    """Milliseconds that each thread has run, and has waited for a core."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        run, wait, _ = map(int, (task / "schedstat").read_text().split())
        found[task.name] = (run / 1e6, wait / 1e6)
    return found


def turn(worker, calls):
    """Seconds of each call, the share of idle cores, and threads' milliseconds a call."""
    before, idle_before = threads(worker.process.pid), idle()
    wall = worker.ask(f"time {min(calls, 4000)} 1")["wall"]
    after, idle_after = threads(worker.process.pid), idle()
    worker.stop()
    left = (idle_after[0] - idle_before[0]) / max(1, idle_after[1] - idle_before[1])
    used = [tuple((after[t][k] - before[t][k]) / len(wall) for k in (0, 1)) for t in after if t in before]
    return wall, left, [u for u in used if sum(u) > 0.01]


def measure(row, programs, places, seconds):
    workers, quiet = {}, {}
    for name, program in programs:
        workers[name] = Worker(name, [program], {}, is_hurried=False)
        workers[name].ask(f"open {row}")
        once = statistics.median(workers[name].ask("time 5 1")["wall"])
        wall, _, _ = turn(workers[name], max(5, int(seconds / once)))
        quiet[name] = statistics.median(wall)
        print(f"{row:8} {name:8} quiet    {1e3 * quiet[name]:7.2f} ms, least {1e3 * min(wall):.2f}", flush=True)
    for place in places:
        busy = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) # Linux weighs sessions first
        try:
            if place != "any":
                os.sched_setaffinity(busy.pid, {int(place)})
            time.sleep(0.2)
            for name, worker in workers.items():
                wall, left, used = turn(worker, max(5, int(seconds / quiet[name] / 2)))
                mean = sum(wall) / len(wall)
                print(f"{row:8} {name:8} {'on ' + place:8} {1e3 * mean:7.2f} ms, {mean / quiet[name]:.2f}; idle {100 * left:.0f} %; "
                      f"run, wait: {'; '.join(f'{r:.1f}, {w:.1f}' for r, w in used)}", flush=True)
        finally:
            busy.kill()
            busy.wait()
    for worker in workers.values():
        worker.end()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", action="append", metavar="ROW", help="these rows (mlp and char)")
    p.add_argument("--where", nargs="+", default=["0", "any", "1"], help="a core's number, or any (0 any 1)")
    p.add_argument("--seconds", type=float, default=1.5, help="about how long each turn is (1.5)")
    p.add_argument("--also", action="append", default=[], metavar="NAME=PROGRAM", help="another build of bench_weft")
    p.add_argument("--program", default="build/bin/bench/bench_weft", help="bench_weft (build/bin/bench/bench_weft)")
    a = p.parse_args()
    programs = [("weft", a.program)] + [tuple(also.split("=", 1)) for also in a.also]
    for row in a.only or ["mlp", "char"]:
        measure(row, programs, a.where, a.seconds)


if __name__ == "__main__":
    main()

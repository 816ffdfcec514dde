#!/usr/bin/env python3
"""kineto_check: what HolisticTraceAnalysis reads in the files of weft trace --kineto.

    kineto_check.py DIR    how much of the exchanges computing hides, by that package, is what the files' own times say, to 1 %

It needs the package HolisticTraceAnalysis (pip install holistictraceanalysis). Exit status 77, with the reason, without it.
"""
import contextlib
import glob
import io
import json
import math
import sys

try:
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    print("skipped: no Python package HolisticTraceAnalysis here: pip install holistictraceanalysis")
    sys.exit(77)


def joined(pieces):
    """Intervals that do not overlap, of those that may."""
    whole = []
    for begin, end in sorted(pieces):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(whole[-1][1], end)
        else:
            whole.append([begin, end])
    return whole


def both(one, other):
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in other)


def overlap(path):
    """The package takes whole microseconds, inwards, and leaves the last run out. Rank, and percent."""
    trace = json.load(open(path))
    events = trace["traceEvents"]
    last = max(e["ts"] for e in events if e["name"].startswith("ProfilerStep#"))
    kinds = {True: [], False: []}
    for event in events:
        if event["cat"] == "kernel" and event["ts"] < last:
            begin, end = math.ceil(event["ts"]), math.floor(event["ts"] + event["dur"])
            kinds[event["name"].startswith("nccl")].append((begin, max(begin, end)))
    exchanges, steps = joined(kinds[True]), joined(kinds[False])
    return trace["distributedInfo"]["rank"], 100 * both(exchanges, steps) / sum(b - a for a, b in exchanges)


def main(folder):
    wanted = dict(overlap(path) for path in glob.glob(folder + "/rank_*.json"))
    with contextlib.redirect_stdout(io.StringIO()):
        found = TraceAnalysis(trace_dir=folder).get_comm_comp_overlap(visualize=False)
    found = dict(zip(found["rank"], found["comp_comm_overlap_pctg"]))
    print(f"computing beside exchanges, in percent of these: {found}, and by the files {wanted}")
    if not wanted or found.keys() != wanted.keys():
        sys.exit("kineto_check: other ranks")
    for rank, percent in wanted.items():
        if not abs(found[rank] - percent) < 1:
            sys.exit(f"kineto_check: rank {rank}: {found[rank]} %, not {percent} %")


if __name__ == "__main__":
    main(sys.argv[1])

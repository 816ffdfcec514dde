#!/usr/bin/env python3
"""guards.py: what must not grow unseen, compared with what kept.json has: instructions of a small training (callgrind),
bytes, collectives and memory of gpt's plans, and the plans' digests. Never a clock.

    ./run guards                 compare; status 1 where something differs that should not
    ./run guards --update        keep what is there now; meant when the change was
    ./run guards --before PLANS  write docs/performance.md's table of bytes: PLANS is another commit's program `plans`
    ./run guards --dtypes        write its table of f32 and bf16
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("kept.json")
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- bytes: made by ./run guards --before PLANS -->", "<!-- end of bytes -->"
BEGIN_DTYPES, END_DTYPES = "<!-- bytes of dtypes: made by ./run guards --dtypes -->", "<!-- end of bytes of dtypes -->"
NEAR = 0.02  # of instructions
COUNTED = ("guarded_compile", "guarded_run")
MEANT = "if that was meant: ./run guards --update"
# One kernel of BLAS, and no more instructions than valgrind knows, so that the count is the same everywhere.
FIXED = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C"}


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"


# ---- what is there now ----------------------------------------------------------------------------------


def plans_of(program):
    done = subprocess.run([str(program)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"guards: {done.stderr.strip() or program}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("plan"): line for line in lines}


def compiled_with(programs):
    """What instructions depend on besides the code."""
    told = json.loads(first_line(str(programs / "work")))
    return {"compiler": first_line("cc", "--version"), "valgrind": first_line("valgrind", "--version"),
            "libc": first_line("getconf", "GNU_LIBC_VERSION"), "blas": told["blas"], "blas kernel": told["blas kernel"]}


def instructions_of(program, function):
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={function}",
                   f"--callgrind-out-file={folder}/out", str(program)]
        done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit("guards: " + (done.stderr.strip().splitlines() or ["valgrind said nothing"])[-1])
    return int(found[1])


def why_not_counted(kept, now):
    if shutil.which("valgrind") is None:
        return "there is no valgrind"
    others = [f"{key} was {kept[key]} and is {now[key]}" for key in now if kept and kept.get(key) != now[key]]
    return others[0] if others else None


def as_text(now):
    """One line for each plan, so that a change of one is a change of a line."""
    plans = ",\n".join(f"  {json.dumps(plan)}: {json.dumps(figures)}" for plan, figures in now["plans"].items())
    head = {key: now[key] for key in ("compiled", "instructions")}
    return json.dumps(head, indent=1)[:-2] + ',\n "plans": {\n' + plans + "\n }\n}\n"


# ---- comparing ------------------------------------------------------------------------------------------


def compare_instructions(kept, now):
    for function, count in now.items():
        was = kept.get(function)
        if was is None or abs(count / was - 1) > NEAR:
            change = "" if was is None else f", {100 * (count / was - 1):+.1f} %"
            yield f"{function} takes {count:,} instructions where {was or 0:,} were kept{change}"


def compare_plans(kept, now):
    """Sentences of what is worse, and of what is only other."""
    worse, other = [], []
    for plan, figures in now.items():
        was = kept.get(plan)
        if was is None:
            other.append(f"{plan}: not kept yet")
            continue
        changes = [f"{key} {was[key]:,} -> {figures[key]:,}" for key in ("bytes", "collectives", "arena")
                   if was[key] != figures[key]]
        grown = [key for key in ("bytes", "arena") if figures[key] > was[key]]
        if grown:
            worse.append(f"{plan}: " + ", ".join(changes))
        elif changes or figures["digest"] != was["digest"]:
            other.append(f"{plan}: " + (", ".join(changes) or "another plan of the same bytes (its digest differs)"))
    other += [f"{plan}: kept, and not there any more" for plan in kept if plan not in now]
    return worse, other


def show(title, lines):
    if lines:
        print(f"{title}; {MEANT}")
        for line in lines[:12]:
            print(f"  {line}")
        if len(lines) > 12:
            print(f"  and {len(lines) - 12} more")


def compare(kept, now):
    grown = list(compare_instructions(kept["instructions"], now["instructions"])) if now["instructions"] else []
    worse, other = compare_plans(kept["plans"], now["plans"])
    show(f"instructions differ by more than {NEAR:.0%}", grown)
    show("plans of gpt that move or hold more", worse)
    show("plans of gpt that are not those that were kept", other)
    n = len(now["plans"]) + len(now["instructions"])
    failed = len(grown) + len(worse) + len(other)
    print(f"guards: {n - failed} passed, {failed} failed")
    return 1 if failed else 0


# ---- the page -------------------------------------------------------------------------------------------


def table(before, after):
    lines = ["| layout | ZeRO | bytes before | after | collectives before | after | arena before | after |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for plan, now in after.items():
        size, mesh, layout, zero = plan.split(" | ")
        if plan not in before or "bf16" in size:
            continue
        was = before[plan]
        pairs = " | ".join(f"{was[key]:,} | {now[key]:,}" for key in ("bytes", "collectives", "arena"))
        lines.append(f"| {size}: `{mesh}` `{layout}` | {zero} | {pairs} |")
    return "\n".join(lines)


def table_of_dtypes(plans):
    lines = ["| layout | ZeRO | bytes in f32 | in bf16 | collectives | in bf16 | arena | in bf16 |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for plan, whole in plans.items():
        size, mesh, layout, zero = plan.split(" | ")
        half = plans.get(f"{size}, bf16 | {mesh} | {layout} | {zero}")
        if half is None or whole["bytes"] == 0:
            continue
        pairs = " | ".join(f"{whole[key]:,} | {half[key]:,}" for key in ("bytes", "collectives", "arena"))
        lines.append(f"| {size}: `{mesh}` `{layout}` | {zero} | {pairs} |")
    return "\n".join(lines)


def write_page(begin, text, end):
    page = PAGE.read_text()
    head, rest = page.split(begin)
    PAGE.write_text(head + begin + "\n\n" + text + "\n\n" + end + rest.split(end)[1])
    return 0


def main():
    p = argparse.ArgumentParser(prog="./run guards", description=__doc__.splitlines()[0])
    p.add_argument("--update", action="store_true", help="keep what is there now")
    p.add_argument("--before", metavar="PLANS", help="another commit's `plans`: write the page's table of bytes")
    p.add_argument("--dtypes", action="store_true", help="write the page's table of f32 and bf16")
    p.add_argument("--programs", default=str(ROOT / "build/bin/guards"), help=argparse.SUPPRESS)
    a = p.parse_args()
    os.environ.update(FIXED)
    programs = Path(a.programs)
    plans = plans_of(programs / "plans")
    if a.before:
        return write_page(BEGIN, table(plans_of(a.before), plans), END)
    if a.dtypes:
        return write_page(BEGIN_DTYPES, table_of_dtypes(plans), END_DTYPES)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"compiled": {}, "instructions": {}, "plans": {}}
    compiled = compiled_with(programs)
    why = why_not_counted({} if a.update else kept["compiled"], compiled)
    if why:
        print(f"skipped: instructions are not counted, as {why}")
    with ThreadPoolExecutor() as pool: # a process each
        of = pool.map(lambda function: instructions_of(programs / "work", function), () if why else COUNTED)
        counts = dict(zip(COUNTED, of))
    now = {"compiled": compiled if counts else kept["compiled"], "instructions": counts or kept["instructions"],
           "plans": plans}
    if not a.update:
        return compare(kept, {**now, "instructions": counts})
    KEPT.write_text(as_text(now))
    print(f"kept: {len(plans)} plans, " + ", ".join(f"{name} {n:,}" for name, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

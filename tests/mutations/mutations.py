#!/usr/bin/env python3
"""mutations.py BUILD OUTPUT [NAME...]: does the suite find faults? Each of faults.py is put into a copy of the source, and one
of its tests has to fail.

BUILD is the configured build whose settings the copy's take; OUTPUT is where the copy is kept and built. NAMEs choose among
the faults. Tests must pass without a fault first. Ends with status 1 if a fault is found by none of its tests.
"""
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from faults import FAULTS


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def copy_source(source, copy):
    """Files that are the same keep their times, so little is built again."""
    listed = run(["git", "-C", source, "ls-files", "-z"]).stdout.split("\0")
    for name in filter(None, listed):
        old, new = source / name, copy / name
        if not old.is_file() or (new.is_file() and new.read_bytes() == old.read_bytes()):
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old, new)


def settings_of(build):
    wanted = ("CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER_LAUNCHER", "CMAKE_C_FLAGS")
    lines = (build / "CMakeCache.txt").read_text().splitlines()
    found = [line.partition("=") for line in lines if line.split(":")[0] in wanted]
    return [f"-D{name.split(':')[0]}={value}" for name, _, value in found if value]


class Suite:
    def __init__(self, build):
        self.build = build
        listed = json.loads(run(["ctest", "--test-dir", build, "--show-only=json-v1"]).stdout)
        self.tests = [(number, test["name"], test.get("command", []))
                      for number, test in enumerate(listed["tests"], 1) if not self._is_long(test)]

    @staticmethod
    def _is_long(test):
        return any(p["name"] == "LABELS" and "long" in p["value"] for p in test["properties"])

    def matching(self, pattern):
        return [test for test in self.tests if re.search(pattern, test[1])]

    def make(self, pattern):
        """None, or what the compiler says. Built are the programs of the tests, which lie in one folder."""
        folder = self.build / "tests"
        words = {Path(word) for _, _, command in self.matching(pattern) for word in command if word.startswith("/")}
        targets = sorted(word.relative_to(self.build) for word in words if folder in word.parents)
        done = run(["cmake", "--build", self.build, "--target", *targets])
        return None if done.returncode == 0 else done.stdout

    def failing(self, pattern):
        numbers = ",".join(str(number) for number, _, _ in self.matching(pattern))
        environment = {**os.environ, "TEST_CASES": os.environ.get("TEST_CASES", "20")}
        done = run(["ctest", "--test-dir", self.build, "-j", os.cpu_count(), "-I", f"0,0,0,{numbers}"], env=environment)
        listed = done.stdout.partition("The following tests FAILED:")[2].splitlines()
        return [line.split()[2] for line in listed if " - " in line]


def try_fault(suite, copy, fault):
    """A line, and whether it was found."""
    if not suite.matching(fault.tests):
        return f"there is no test {fault.tests}", False
    path = copy / fault.file
    text = path.read_text()
    if text.count(fault.words) != 1:
        return f"{fault.file} has its words {text.count(fault.words)} times, not once: say it anew", False
    path.write_text(text.replace(fault.words, fault.becomes))
    try:
        broken = suite.make(fault.tests)
        failing = suite.failing(fault.tests) if broken is None else []
    finally:
        path.write_text(text)
    if broken is not None:
        return f"does not compile: {broken.strip().splitlines()[-1]}", False
    return (f"found by {', '.join(failing)}", True) if failing else (f"not found by {fault.tests}", False)


def main(build, output, names):
    source = Path(__file__).resolve().parents[2]
    known = [fault.name for fault in FAULTS]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            print(f"mutations.py: there is no fault {name}; {f'did you mean {near[0]}?' if near else 'faults.py lists them'}",
                  file=sys.stderr)
            return 2
    faults = [fault for fault in FAULTS if not names or fault.name in names]
    copy, built = output / "source", output / "build"
    copy_source(source, copy)
    configured = run(["cmake", "-S", copy, "-B", built, "-G", "Ninja", *settings_of(build)])
    if configured.returncode != 0:
        sys.exit(f"mutations.py: {configured.stderr}")
    print(f"building all, and running the tests of {len(faults)} faults without a fault", flush=True)
    broken = run(["cmake", "--build", built])  # CTest tells the programs of tests once they are there
    if broken.returncode != 0:
        sys.exit(f"mutations.py: {broken.stdout[-2000:]}")
    suite, patterns = Suite(built), "|".join(sorted({fault.tests for fault in faults}))
    failing = suite.failing(patterns)
    if failing:
        sys.exit(f"mutations.py: without a fault already: {failing}")
    missed = 0
    for fault in faults:
        words, is_found = try_fault(suite, copy, fault)
        missed += not is_found
        print(f"{fault.name}: {words}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))

#!/usr/bin/env python3
"""device.py: Weft beside PyTorch on a GPU, in one interleaved run (./run device-bench).

    device.py --programs DIR [--python PYTHON] [--device cuda] [--rounds 7] [ROW...]

Trainings of GPT-2 in bf16: milliseconds a step, the share of the measured product ceiling, and the memory that the GPU says is
taken. Then ops that memory bounds, beside a copy. Each worker lives through a row, in turns, as in bench.py; where both do not
fit onto the GPU, one is measured after the other, and the line says so. Without PyTorch its columns say why.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import sizes
from process import Failed, Worker

HERE = Path(__file__).resolve().parent
APART = 2e-2  # of losses in bf16
TRAININGS = ["gpt2_64x1024", "gpt2_4x1024", "gpt2_xl_16x1024"]
BOUND = {"large_gelu": 2, "large_softmax": 2, "large_layer_norm": 2, "large_adamw": 7}  # matrices read and written


def flops(row):
    """Of a training step: 6 a weight and token, and attention's two products, which see half, three times."""
    batch, seq, layers, width, _, vocab = sizes.DEVICE_GPT2[row]
    weights = layers * 12 * width * width + vocab * width
    return batch * seq * (6 * weights + 6 * layers * seq * width)


def taken():
    """Bytes of the GPU's memory in use, by whom ever; None: nobody can say."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(said.split()[0]) << 20
    except (OSError, ValueError, IndexError, subprocess.CalledProcessError):
        return None


class Contender:
    """One program, and what came of it in the row at hand."""

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.forget()

    def forget(self):
        self.worker, self.why, self.walls, self.numbers, self.memory = None, None, [], [], None

    def open(self, row, steps):
        before = taken()
        try:
            self.worker = Worker(self.name, self.command, None)
            opened = self.worker.ask(f"open {row}")
            if "skipped" in opened:
                raise Failed(opened["skipped"])
            self.numbers = self.worker.ask(f"look {steps}")["numbers"]
            self.worker.plan(0.5, 0.05)
            self.worker.stop()
        except Failed as why:
            self.close()
            self.why = str(why)
            return
        after = taken()
        self.memory = after - before if before is not None and after is not None else None

    def measure(self):
        """A turn; who ends in one is told of as one who did not begin."""
        try:
            wall = self.worker.ask(f"time {self.worker.blocks} {self.worker.calls}")["wall"]
            self.walls.append(min(wall) / self.worker.calls)
            self.worker.stop()
        except Failed as why:
            self.close()
            self.walls, self.why = [], str(why)

    def close(self):
        if self.worker is not None:
            self.worker.end()
        self.worker = None


def in_turn(row, contenders, rounds, steps):
    """False: not all that are there fit onto the GPU together."""
    for c in contenders:
        c.forget()
        c.open(row, steps)
    some = any(c.worker for c in contenders)
    together = not some or all(c.worker or "memory" not in c.why.lower() for c in contenders)
    for _ in range(rounds if together else 0):
        for c in contenders:
            if c.worker:
                c.measure()
    for c in contenders:
        c.close()
    return together


def one_by_one(row, contenders, rounds, steps):
    for c in contenders:
        in_turn(row, [c], rounds, steps)


def measure(row, contenders, rounds, steps):
    if in_turn(row, contenders, rounds, steps):
        return "in turns"
    one_by_one(row, contenders, rounds, steps)
    return "one after the other: not all fit together"


def disagreement(contenders):
    numbers = [c.numbers for c in contenders if c.walls]
    apart = [abs(a / b - 1) for found in numbers for a, b in zip(found, numbers[0])]
    far = [a for a in apart if not a <= APART]  # no number is far, too
    return f", LOSSES ARE {far[0]:.1e} APART" if far else ""


def say_training(row, contenders, how, ceiling):
    print(f"{row}: {how}{disagreement(contenders)}")
    first = min(contenders[0].walls, default=None)
    for c in contenders:
        if not c.walls:
            print(f"  {c.name}: skipped: {c.why}")
            continue
        best = min(c.walls)
        share = f", {flops(row) / best / ceiling:.1%} of the product ceiling" if ceiling else ""
        memory = f", {c.memory / 2**30:.2f} GiB" if c.memory is not None else ""
        ratio = f", {best / first:.2f} x Weft's" if first and c is not contenders[0] else ""
        print(f"  {c.name}: {best * 1e3:.2f} ms a step{ratio}{share}{memory}, losses " +
              " ".join(f"{n:.5g}" for n in c.numbers))


def rate(row, amount, contenders, rounds):
    """The highest of what is there; (rate, whose), or None."""
    for c in contenders:
        c.forget()
        c.open(row, 1)
        for _ in range(rounds):
            if c.worker:
                c.measure()
        c.close()
    found = [(amount / min(c.walls), c.name) for c in contenders if c.walls]
    return max(found) if found else None


def reason(contenders):
    """Why a rate of theirs is not there."""
    return "; ".join(f"{c.name}: {c.why}" for c in contenders if c.why) or "no PyTorch"


def say_bounds(weft, others, rounds):
    n_bytes = 4 * sizes.DEVICE_MATRIX[0] * sizes.DEVICE_MATRIX[1]
    copy = rate("large_copy", 2 * n_bytes, others, rounds)
    print("copy: " + (f"{copy[0] / 1e9:.0f} GB/s ({copy[1]})" if copy else f"not measured: {reason(others)}"))
    for row, passes in BOUND.items():
        found = rate(row, passes * n_bytes, [weft], rounds)
        share = f", {found[0] / copy[0]:.1%} of a copy" if found and copy else ""
        print(f"{row}: " + (f"{found[0] / 1e9:.0f} GB/s{share}" if found else f"skipped: {weft.why}"))


def contenders_of(arguments):
    where = ["--device", arguments.device]
    narrow = ["--dtype", "bf16", "--precision", "bf16"]
    program = str(Path(arguments.programs) / "bench_weft")
    torch = [arguments.python, str(HERE / "torch_worker.py"), *where, "--bf16"]
    graphs = ["--graphs"] if arguments.device == "cuda" else []
    return (Contender("Weft", [program, *where, *narrow]), Contender("Weft in f32", [program, *where]),
            [Contender("PyTorch, compile", [*torch, "--compile", *graphs]), Contender("PyTorch", torch)])


def torch_missing(python):
    """None, or why there is none."""
    try:
        done = subprocess.run([python, "-c", "import numpy, torch"], capture_output=True, text=True)
    except OSError as why:
        return str(why)
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"status {done.returncode}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only-trainings", action="store_true")
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    weft, wide, torch = contenders_of(arguments)
    missing = torch_missing(arguments.python)
    if missing:
        print(f"PyTorch: skipped: no PyTorch: {missing}")
        torch = []
    ceiling = None
    if not arguments.only_trainings:
        m, k, n = sizes.DEVICE_PRODUCT
        asked = [torch[1]] if torch else [weft]
        ceiling = rate("large_product", 2.0 * m * k * n, asked, arguments.rounds)
        print("product ceiling: " + (f"{ceiling[0] / 1e12:.0f} TFLOP/s ({ceiling[1]})" if ceiling
                                     else f"not measured: {reason(asked)}"))
    missed = 0
    for row in arguments.rows or TRAININGS:
        how = measure(row, [weft, *torch], arguments.rounds, 3)
        say_training(row, [weft, *torch], how, ceiling and ceiling[0])
        missed += not weft.walls
    if not arguments.only_trainings:
        say_bounds(wide, torch[1:], arguments.rounds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

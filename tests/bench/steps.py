"""steps.py [ROUNDS]: what Python costs: seconds of recording an op, of a first result, and of training steps of a perceptron with Adam as a
compiled program, as lazy tensors and as a recorded function, on one rank. Kinds of steps take turns, so that a slow moment hits all.

    python3 tests/bench/steps.py        LIBWEFT: another library than that of build/lib
"""
import os
import statistics
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
BEGAN = time.perf_counter()
import numpy as np
import weft

warnings.simplefilter("ignore", weft.Recompiled)
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
BATCH, RATE = 128, 1e-3


def first_result():
    """Of a process: what was imported, compiled and read."""
    began = time.perf_counter()
    x = weft.tensor(np.ones((8, 4), "f4"), "batch pixel")
    weft.relu(x @ weft.Variable("first", "pixel:4 hidden:4", 0.5)).mean().item()
    return time.perf_counter() - began


def recording(call, n=2000):
    """Seconds a call that records."""
    kept, began = [], time.perf_counter()
    for _ in range(n):
        kept.append(call())
    return (time.perf_counter() - began) / n


def names(hidden):
    return f"pixel:784 h{hidden}:{hidden}", f"h{hidden}:{hidden}", f"h{hidden}:{hidden} digit:10", "digit:10"


def compiled(hidden, images, labels):
    graph = weft.Graph(seed=1)
    x, y = graph.input("x", [("batch", BATCH), ("pixel", 784)]), graph.input("y", [("batch", BATCH)], "i32")
    dims = [[tuple([p.split(":")[0], int(p.split(":")[1])]) for p in text.split()] for text in names(hidden)]
    w, b, v, c = (graph.variable(f"v{k}", d, weft.normal(0.0, 0.05) if k % 2 == 0 else 0.0) for k, d in enumerate(dims))
    h = weft.relu(weft.einsum([("batch", BATCH), dims[1][0]], x, w) + b)
    loss = weft.mean(weft.cross_entropy(weft.einsum([("batch", BATCH), ("digit", 10)], h, v) + c, y, ("digit", 10)))
    program = weft.Program(weft.Mesh(""), "", [loss, weft.adam(loss, rate=RATE)])

    def step():
        program.write(x, images)
        program.write(y, labels)
        program.run()
        return program.read(loss)

    return step


def net_of(hidden, prefix):
    return [weft.Variable(f"{prefix}{k}", text, weft.normal(0.0, 0.05) if k % 2 == 0 else 0.0) for k, text in enumerate(names(hidden))]


def loss_of(net, x, y):
    w, b, v, c = net
    return weft.mean(weft.cross_entropy(weft.relu(x @ w + b) @ v + c, y, "digit"))


def lazy(hidden, images, labels):
    net, optimizer = net_of(hidden, f"lazy{hidden}_"), weft.Adam(rate=RATE)

    def step():
        loss = loss_of(net, weft.tensor(images, "batch pixel"), weft.tensor(labels, "batch"))
        optimizer.step(loss)
        return loss.item()

    return step


def recorded(hidden, images, labels):
    net, optimizer = net_of(hidden, f"jit{hidden}_"), weft.Adam(rate=RATE)

    @weft.jit
    def train(x, y):
        loss = loss_of(net, x, y)
        optimizer.step(loss)
        return loss

    return lambda: train(weft.tensor(images, "batch pixel"), weft.tensor(labels, "batch")).item()


def seconds(step, n):
    began = time.perf_counter()
    for _ in range(n):
        step()
    return (time.perf_counter() - began) / n


def compare(hidden):
    random = np.random.default_rng(0)
    images, labels = random.normal(size=(BATCH, 784)).astype("f4"), random.integers(0, 10, BATCH).astype("i4")
    fixed = images.copy()
    fixed.setflags(write=False)
    kinds = [kind(hidden, array, labels) for kind, array in ((compiled, images), (lazy, images), (lazy, fixed), (recorded, images), (recorded, fixed))]
    n = max(5, 10000 // hidden)
    for step in kinds:
        seconds(step, 10)
    taken = [[seconds(step, n) for step in kinds] for _ in range(ROUNDS)]
    base = statistics.median(round[0] for round in taken)
    times = [statistics.median(round[k] / round[0] for round in taken) for k in range(1, 5)]
    print(f"784 x {hidden} x 10: compiled {base * 1e3:.2f} ms; lazy {times[0]:.2f} times, {times[1]:.2f} of arrays that nobody can write; "
          f"jit {times[2]:.2f}, {times[3]:.2f}", flush=True)


print(f"import {(time.perf_counter() - BEGAN) * 1e3:.0f} ms, first result {first_result() * 1e3:.1f} ms, another {first_result() * 1e3:.1f} ms")
X = weft.tensor(np.ones((8, 4), "f4"), "batch pixel")
for what, call in (("an operator", lambda: X + X), ("a method", lambda: X.tanh()), ("a function", lambda: weft.softmax(X, "pixel"))):
    print(f"{what} is recorded in {min(recording(call) for _ in range(5)) * 1e6:.1f} us")
for hidden in (256, 2048):
    compare(hidden)

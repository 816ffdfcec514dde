"""nets.py: the small trainings of weft/nets.c, weft/resnet.c and weft/sequences.c as the peers need to know them: sizes, variables
and what all begin with."""
import math

import numpy as np

import resnet
import worker
from net_rows import LETTERS, SIZES

N_INPUTS = {"seq2seq": 3}  # and of the others 2: streams of variables come behind


def variables(net):
    """(name, shape, deviation), in the order of streams 2, 3, ...: [in, out]; filters [row, column, in, out].
    Deviation None: ones, without a stream; these come last."""
    def layer(name, shape, deviation=0.05):
        return [(name + "/weight", shape, deviation), (name + "/bias", shape[-1:], deviation)]

    if net == "mlp":
        _, pixels, hidden = SIZES[net]
        return layer("first", (pixels, hidden)) + layer("second", (hidden, hidden)) + layer("last", (hidden, 10))
    if net == "cnn":
        _, channels, hidden = SIZES[net]
        return (layer("conv1", (3, 3, 1, channels), 0.1) + layer("conv2", (3, 3, channels, 2 * channels), 0.1)
                + layer("first", (7, 7, 2 * channels, hidden)) + layer("last", (hidden, 10)))
    if net == "resnet18":
        return resnet.variables()
    if net == "experts":
        _, _, embed, hidden, n, _ = SIZES[net]
        return [("table", (LETTERS, embed), 0.1), ("mixture/router", (embed, n), 0.1), ("mixture/up", (n, embed, hidden), 0.1),
                ("mixture/down", (n, hidden, embed), 0.1)] + layer("last", (embed, LETTERS))

    def lstm(name):
        return [(name + "/state", (4, hidden, hidden), 0.05), (name + "/input", (4, embed, hidden), 0.05),
                (name + "/bias", (4, hidden), 0.05)]

    letters, embed, hidden = SIZES[net][-3:]
    if net == "seq2seq":
        return ([("source", (letters, embed), 0.1), ("target", (letters, embed), 0.1)] + lstm("reader") + lstm("writer")
                + layer("mix", (hidden, hidden)) + layer("last", (hidden, letters)))
    return [("table", (letters, embed), 0.1)] + lstm("lstm") + layer("last", (hidden, letters))


def begin(net):
    return {name: np.ones(shape, np.float32) if deviation is None
            else worker.numbers(N_INPUTS.get(net, 2) + k, shape, 0.0, math.sqrt(3.0) * deviation)
            for k, (name, shape, deviation) in enumerate(variables(net))}


def batch(net):
    """What goes in, and last what should come out."""
    if net == "seq2seq":
        n, read, written, letters, _, _ = SIZES[net]
        return tuple(worker.indices(i, (steps, n), letters) for i, steps in enumerate((read, written, written)))
    if net == "experts":
        return tuple(worker.indices(i, SIZES[net][:2], LETTERS) for i in range(2))
    if net == "lstm_lm":
        n, steps, letters, _, _ = SIZES[net]
        return worker.indices(0, (steps, n), letters), worker.indices(1, (steps, n), letters)
    n = SIZES[net][0]
    shapes = {"mlp": (784,), "cnn": (28, 28, 1), "resnet18": (resnet.SIDE, resnet.SIDE, 3)}
    return worker.numbers(0, (n, *shapes[net])), worker.indices(1, (n,), 10)


def decays(name, shape):
    return len(shape) > 1

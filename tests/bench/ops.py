"""ops.py: what the rows of weft/ops.c begin with, for the peers."""
import math

import worker

ADAMW = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "decay": 0.1}


def data(stream, shape):
    return worker.numbers(stream, shape)


def weight(stream, shape):
    return worker.numbers(stream, shape, 0.0, math.sqrt(3.0) * 0.02)


def vector(stream, n, mean):
    return worker.numbers(stream, (n,), mean, 0.02)

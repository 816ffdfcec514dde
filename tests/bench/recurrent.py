"""recurrent.py: what the rows of weft/recurrent.c begin with, for the peers."""
import math

import worker
from recurrent_rows import SCAN, SIZES, is_lstm


def begin(name):
    """x [time, batch, feature], state [gate, from, hidden], input [gate, feature, hidden], bias [gate, hidden], and a
    GRU's new_bias [hidden]: in the order of streams."""
    batch, steps, features, hidden = SIZES[name]
    gates, scale = 4 if is_lstm(name) else 3, math.sqrt(3.0) / math.sqrt(3.0 * hidden)
    shapes = [(gates, hidden, hidden), (gates, features, hidden), (gates, hidden)]
    shapes += [] if is_lstm(name) else [(hidden,)]
    return [worker.numbers(0, (steps, batch, features))] + [worker.numbers(1 + i, shape, 0.0, scale)
                                                            for i, shape in enumerate(shapes)]

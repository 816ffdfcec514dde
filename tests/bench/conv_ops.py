"""conv_ops.py: what the rows of weft/conv.c begin with, for the peers, and how they are looked at."""
import ops
import worker
from conv_sizes import CONVS, GROUPS


def begin(conv):
    """x, the filter (not of pools) and the result's gradient, numbered as weft/conv.c calls for them."""
    x, w, y = conv.shapes()
    if conv.is_pool:
        return ops.data(0, x), None, ops.data(1, y)
    return ops.data(0, x), ops.weight(1, w), ops.data(2, y)


def sums(results):
    return [number for result in results for number in worker.sums(result)]

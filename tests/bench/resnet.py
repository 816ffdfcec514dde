"""resnet.py: ResNet-18 for images of 32 x 32, as weft/resnet.c has it: its filters, and what all begin with."""
import math

STAGES, BLOCKS, NARROWEST, SIDE = 4, 2, 64, 32


def blocks():
    """(name, channels, features, stride)"""
    channels = NARROWEST
    for i in range(STAGES * BLOCKS):
        features = NARROWEST << i // BLOCKS
        yield f"block{i}", channels, features, 1 if features == channels else 2
        channels = features


def filters():
    """(name, taps, channels, features, stride), in the order of streams."""
    yield "stem/first", 3, 3, NARROWEST, 1
    for name, channels, features, stride in blocks():
        yield name + "/first", 3, channels, features, stride
        yield name + "/second", 3, features, features, 1
        if stride > 1:
            yield name + "/past", 1, channels, features, stride


def variables():
    """As nets.variables: those of norms come last, as they begin without a stream."""
    found = [(name + "/weight", (taps, taps, channels, features), math.sqrt(2.0 / (taps * taps * channels)))
             for name, taps, channels, features, _ in filters()]
    found += [("last/weight", (NARROWEST << STAGES - 1, 10), 0.05), ("last/bias", (10,), 0.05)]
    for name, _, _, features, _ in filters():
        found += [(name + "/norm/gain", (features,), None), (name + "/norm/bias", (features,), 0.0)]
    return found

"""conv_sizes.py: sizes of convolutions and pooling, as weft/conv.c has them."""
import math
from dataclasses import dataclass

GROUPS, PLANES = 32, 16


@dataclass(frozen=True)
class Conv:
    kind: str  # "first": no gradient of what it reads; "conv", "depthwise", "grouped", "transposed", "deep", "max_pool", "average_pool"
    batch: int
    side: int
    channels: int  # of a group
    features: int
    taps: int
    stride: int

    before = property(lambda self: (self.taps - 1) // 2)
    is_pool = property(lambda self: self.kind.endswith("pool"))
    n_dims = property(lambda self: 3 if self.kind == "deep" else 2)
    groups = property(lambda self: {"grouped": GROUPS, "depthwise": self.channels}.get(self.kind, 1))

    def space(self):
        return (PLANES, self.side, self.side) if self.kind == "deep" else (self.side, self.side)

    def result(self):
        """Elements of each dim of space of the result."""
        if self.kind == "transposed":
            return tuple(n * self.stride for n in self.space())
        return tuple((n + 2 * self.before - self.taps) // self.stride + 1 for n in self.space())

    def shapes(self):
        """Of x, filter and result, channels last; dims of space come first in a filter."""
        taps = (self.taps,) * self.n_dims
        read, made = self.channels, self.features
        of_x, of_y, w = (read,), (made,), taps + (read, made)
        if self.kind == "depthwise":
            of_y, w = of_x, taps + of_x
        if self.kind == "grouped":
            of_x, of_y, w = (GROUPS, read), (GROUPS, made), taps + (GROUPS, read, made)
        if self.is_pool:
            of_y = of_x
        return (self.batch, *self.space(), *of_x), w, (self.batch, *self.result(), *of_y)

    def flops(self):
        """Of the result and of each gradient."""
        _, w, y = self.shapes()
        places = math.prod(self.space()) if self.kind == "transposed" else math.prod(self.result())
        return (2 if self.kind == "first" else 3) * 2.0 * self.batch * places * math.prod(w)

    def bytes(self):
        """Of a pool's step: read x and the result's gradient, write the result and x's gradient."""
        x, _, y = self.shapes()
        return 8.0 * (math.prod(x) + math.prod(y))


CONVS = {
    "conv_7x7_3_64": Conv("first", 8, 112, 3, 64, 7, 2),
    "conv_3x3_3_32": Conv("first", 16, 32, 3, 32, 3, 1),
    "conv_3x3_64": Conv("conv", 8, 56, 64, 64, 3, 1),
    "conv_3x3_128": Conv("conv", 8, 28, 128, 128, 3, 1),
    "conv_3x3_256": Conv("conv", 8, 14, 256, 256, 3, 1),
    "conv_3x3_512": Conv("conv", 8, 7, 512, 512, 3, 1),
    "conv_3x3_128_by_2": Conv("conv", 8, 56, 128, 128, 3, 2),
    "conv_1x1_256_64": Conv("conv", 8, 56, 256, 64, 1, 1),
    "conv_1x1_64_256": Conv("conv", 8, 56, 64, 256, 1, 1),
    "conv_1x1_256_512_by_2": Conv("conv", 8, 56, 256, 512, 1, 2),
    "conv_depthwise": Conv("depthwise", 8, 56, 128, 1, 3, 1),
    "conv_grouped": Conv("grouped", 8, 56, 4, 4, 3, 1),
    "conv_transpose": Conv("transposed", 8, 28, 64, 64, 4, 2),
    "conv_deep": Conv("deep", 2, 28, 32, 32, 3, 1),
    "max_pool_2x2": Conv("max_pool", 16, 56, 64, 1, 2, 2),
    "max_pool_3x3": Conv("max_pool", 8, 56, 64, 1, 3, 2),
    "average_pool_2x2": Conv("average_pool", 16, 56, 64, 1, 2, 2),
}

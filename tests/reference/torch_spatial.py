"""torch_spatial.py: convolution, pooling, cumsum and cumprod, and their gradients, in PyTorch float64, as a text table.

    pip install torch
    python torch_spatial.py        writes spatial.txt beside this script

Operands are formulas of the element's row-major index; the formulas and the cases here and in spatial_test.c are the same. The
loss is half the sum of the squares of y. Lines of the table, numbers as %.17g:

    CASE y|x|w sum squares first middle last        of the result; of the gradients of x and, where there is one, of w
"""

import math
import os

import torch
import torch.nn.functional as f

torch.set_default_dtype(torch.float64)


def formula(frequency, *shape):
    data = [math.cos(frequency * i) for i in range(math.prod(shape))]
    return torch.tensor(data).reshape(shape).requires_grad_()


CASES = {
    "conv1d": ([2, 3, 11], [4, 3, 3], lambda x, w: f.conv1d(x, w, stride=2, padding=1)),
    "conv2d": (
        [2, 4, 9, 8],
        [6, 2, 3, 2],
        lambda x, w: f.conv2d(x, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
    ),
    "conv3d": ([1, 2, 5, 6, 7], [3, 2, 2, 3, 3], lambda x, w: f.conv3d(x, w, padding=1)),
    "transposed": ([2, 4, 5, 4], [4, 3, 3, 3], lambda x, w: f.conv_transpose2d(x, w, stride=2, padding=1)),
    "max_pool": ([2, 3, 9, 8], None, lambda x, w: f.max_pool2d(x, (3, 2), 2, (1, 1))),
    "average_pool": ([2, 3, 9, 8], None, lambda x, w: f.avg_pool2d(x, (3, 2), 2, (1, 1))),
    "average_within": ([2, 3, 9, 8], None, lambda x, w: f.avg_pool2d(x, (3, 2), 2, (1, 1), count_include_pad=False)),
}

ROWS = torch.arange(10)
CASES["cumsum"] = ([3, 100, 2], None, lambda x, w: torch.cumsum(x, 1))
CASES["cumsum_back"] = ([3, 100, 2], None, lambda x, w: torch.cumsum(x.flip(1), 1).flip(1))
CASES["cumprod"] = ([2, 120], None, lambda x, w: torch.cumprod(1 + 0.1 * x, 1))
# with two zeros in each row, whose gradients are those of w there
CASES["cumprod_zeros"] = (
    [3, 10],
    [3, 10],
    lambda x, w: torch.cumprod(torch.where((ROWS == 3) | (ROWS == 7), w * 0 + (w - w.detach()), x), 1),
)


def line(case, what, tensor):
    data = tensor.detach().flatten()
    numbers = [data.sum(), (data * data).sum(), data[0], data[len(data) // 2], data[-1]]
    return " ".join([case, what] + [f"{float(x):.17g}" for x in numbers]) + "\n"


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spatial.txt"), "w", encoding="utf-8") as file:
        for name, (of_x, of_w, call) in CASES.items():
            x = formula(0.7, *of_x)
            w = formula(1.3, *of_w) if of_w else None
            y = call(x, w)
            (0.5 * (y * y).sum()).backward()
            file.write(line(name, "y", y))
            file.write(line(name, "x", x.grad))
            if w is not None:
                file.write(line(name, "w", w.grad))


main()

"""torch_functions.py: products, norms, order, segments, matrices, CTC and batch norm, and their gradients, in PyTorch float64, as text tables.

    pip install torch
    python torch_functions.py        writes functions.txt and batch_norm.txt beside this script

Variables are cos(frequency * i) of the element's row-major index i, as Weft has their dims; the formulas and the cases here and in
functions_test.c and batch_norm_test.c are the same. The loss is half the sum of the squares of y. Lines of the tables, numbers as
%.17g:

    CASE OUTPUT sum squares first middle last        of y, and of the gradients of x and w
"""

import math
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
HERE = os.path.dirname(os.path.abspath(__file__))


def formula(frequency, *shape):
    data = [math.cos(frequency * i) for i in range(math.prod(shape))]
    return torch.tensor(data).reshape(shape).requires_grad_()


def write(file, case, what, tensor):
    data = tensor.detach().flatten()
    numbers = [data.sum(), (data * data).sum(), data[0], data[len(data) // 2], data[-1]]
    file.write(" ".join([case, what] + [f"{float(x):.17g}" for x in numbers]) + "\n")


def give(file, case, y, x, w=None):
    y = y.contiguous()
    if y.requires_grad:
        (0.5 * (y * y).sum()).backward()
    write(file, case, "y", y)
    for name, of in (("x", x), ("w", w)):
        if of is not None:
            write(file, case, name, of.grad)


def functions(file):
    x = formula(0.7, 4, 5)
    give(file, "prod", x.prod(1), x)
    x, w = formula(0.7, 4, 5), torch.zeros(4, 5).requires_grad_()
    row, column = torch.arange(4)[:, None], torch.arange(5)[None, :]
    give(file, "prod_zeros", 1 + torch.where((column == row) | (column == 6 - 2 * row), w, x).prod(1), x, w)
    for case, of in (("cummax", torch.cummax), ("cummin", torch.cummin)):
        x = formula(0.7, 3, 100)
        give(file, case, of(x, 1)[0], x)
    x, w = formula(0.7, 2, 6, 5), formula(1.3, 6)
    give(file, "group_norm", F.group_norm(x, 3, w, 0.5 * w, 1e-3), x, w)
    x, w = formula(0.7, 2, 6, 5), formula(1.3, 6)
    give(file, "instance_norm", F.instance_norm(x, None, None, w, 0.5 * w, True, 0.1, 1e-3), x, w)
    x, w = formula(0.7, 4, 5), formula(1.3, 4)
    give(file, "weight_norm", torch._weight_norm(x, w[:, None], 0) * torch.arange(1, 6), x, w)
    x, w = formula(0.7, 4, 5), formula(1.3, 4, 5)
    labels = 1.5 + w  # any weights
    give(file, "soft_labels", F.cross_entropy(x, labels, reduction="none"), x, w)
    x, w = formula(0.7, 4, 5), formula(1.3, 4, 5)
    labels = torch.softmax(w, 1)
    give(file, "smooth_labels", F.cross_entropy(x, labels, reduction="none", label_smoothing=0.2), x, w)
    x = formula(0.7, 4, 5)
    give(file, "erfinv", torch.erfinv(0.99 * x), x)
    x = formula(0.7, 3, 100)
    give(file, "sort", torch.sort(x, dim=1)[0] * torch.arange(100), x)
    x = formula(0.7, 3, 100)
    give(file, "sort_down", torch.sort(x, dim=1, descending=True)[0] * torch.arange(100), x)
    x = formula(0.7, 3, 400)
    give(file, "top_k", torch.topk(x, 4, dim=1)[0] * torch.arange(1, 5), x)
    x = formula(0.7, 3, 400)
    give(file, "bottom_k", torch.topk(x, 4, dim=1, largest=False)[0] * torch.arange(1, 5), x)
    x = formula(0.7, 3, 50)
    give(file, "quantile", torch.quantile(x, 0.3, dim=1), x)
    x = formula(0.7, 3, 50)
    give(file, "median", torch.quantile(x, 0.5, dim=1), x)
    ids = (torch.arange(20) * 7) % 6
    for case, how in (("scatter_max", "amax"), ("scatter_min", "amin"), ("segment_mean", "mean")):
        x = formula(0.7, 20, 3)
        to = torch.zeros(6, 3).scatter_reduce(0, ids[:, None].expand(20, 3), x, how, include_self=False)
        give(file, case, to, x)
    x, w = formula(0.7, 6, 3), formula(1.3, 4, 5)
    bags = ids.reshape(4, 5)
    give(file, "bag_sum", F.embedding_bag(bags, x, per_sample_weights=w, mode="sum"), x, w)
    x = formula(0.7, 6, 3)
    give(file, "bag_mean", F.embedding_bag(bags, x, mode="mean"), x)
    write(file, "histogram", "y", torch.histc(formula(0.7, 500).detach(), 7, -0.9, 1.0))


def matrices(file):
    one = torch.eye(5)
    x = formula(0.7, 3, 5, 5)
    positive = x @ x.transpose(1, 2) + 2 * one
    give(file, "cholesky", torch.linalg.cholesky(positive), x)
    x, w = formula(0.7, 3, 5, 5), formula(1.3, 3, 5, 4)
    give(file, "triangular", torch.linalg.solve_triangular(x + 2 * one, w, upper=False), x, w)
    x, w = formula(0.7, 3, 5, 5), formula(1.3, 3, 5, 4)
    give(file, "triangular_up", torch.linalg.solve_triangular((x + 2 * one).transpose(1, 2), w, upper=True), x, w)
    x, w = formula(0.7, 3, 5, 5), formula(1.3, 3, 5, 4)
    give(file, "solve", torch.linalg.solve(torch.roll(x + 2 * one, 2, 1), w), x, w)
    x, w = formula(0.7, 3, 5, 5), formula(1.3, 3, 5, 4)
    positive = x @ x.transpose(1, 2) + 2 * one
    give(file, "solve_positive", torch.cholesky_solve(w, torch.linalg.cholesky(positive)), x, w)


def ctc(file):
    """CTC takes log-likelihoods; labels 1 + 5 i mod 6 of 7 classes; rows have 30, 25, .. frames, and 6, 5, .. labels."""
    for case, blank, shift in (("ctc", 0, 1), ("ctc_last", 6, 0)):
        x = formula(0.7, 4, 30, 7)
        labels = shift + (5 * torch.arange(24) % 6).reshape(4, 6)
        frames, counts = 30 - 5 * torch.arange(4), 6 - torch.arange(4)
        log_p = torch.log_softmax(2 * x, 2).transpose(0, 1)
        give(file, case, F.ctc_loss(log_p, labels, frames, counts, blank, reduction="none"), x)
    x = formula(0.7, 4, 30, 7)
    labels = torch.tensor([[1, 1, 1, 1, 2, 2]] * 4)  # ten frames at least
    frames = torch.tensor([11, 10, 9, 8])
    log_p = torch.log_softmax(2 * x, 2).transpose(0, 1)
    give(file, "ctc_none", F.ctc_loss(log_p, labels, frames, torch.tensor([6] * 4), 0, "none", True), x)


def batch_norm(file):
    """Two steps in training, then the same input by the averages."""
    x, gain, bias = formula(0.7, 4, 3, 5), (1.5 + formula(1.3, 3)).detach().requires_grad_(), formula(0.9, 3)
    mean, variance = torch.zeros(3), torch.ones(3)
    for step in ("first", "second"):
        for of in (x, gain, bias):
            of.grad = None
        scaled = x if step == "first" else 2 * x + 1
        y = F.batch_norm(scaled, mean, variance, gain, bias, True, 0.1, 1e-5)
        (0.5 * (y * y * torch.cos(torch.arange(60.0)).reshape(4, 3, 5)).sum()).backward()
        write(file, step, "y", y)
        for name, of in (("x", x.grad), ("gain", gain.grad), ("bias", bias.grad), ("mean", mean), ("variance", variance)):
            write(file, step, name, of)
    write(file, "fixed", "y", F.batch_norm(x, mean, variance, gain, bias, False, 0.1, 1e-5))


def main():
    with open(os.path.join(HERE, "functions.txt"), "w", encoding="utf-8") as file:
        functions(file)
        matrices(file)
        ctc(file)
    with open(os.path.join(HERE, "batch_norm.txt"), "w", encoding="utf-8") as file:
        batch_norm(file)


main()

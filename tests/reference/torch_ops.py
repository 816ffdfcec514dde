"""torch_ops.py: every op that PyTorch has, and its gradient, in PyTorch float64, as a text table.

    pip install torch
    python torch_ops.py        writes ops.txt beside this script

Each function here is one of the oracle's cases (tests/oracle/cases_*.c), by its name, and takes what the case takes: operand k has
numbers that are a function of k and of the element's row-major index alone (weft_oracle_element). The loss is the sum of
y^2 / 2 + y^3 / 3. Lines of the table, numbers as %.17g:

    CASE OUTPUT sum squares first middle last        of y, and of the gradients of float operand k as dk
"""

import math
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
HERE = os.path.dirname(os.path.abspath(__file__))
A, B, C, D, ONE, BATCH, HEADS, SEQ, MEMORY, FEATURE = 5, 7, 3, 2, 1, 3, 2, 5, 7, 4
ROWS, OTHER, MERGED, SIX, OUTER, TEN, PART, KEY, LONG = 9, 7, 12, 6, 4, 10, 4, 5, 150
WORD = (1 << 64) - 1


def unit(k, i):
    x = (i * 0x9E3779B97F4A7C15 + (k + 1) * 0xD1B54A32D192ED03) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return ((x ^ (x >> 31)) >> 44) / 1048576.0


class Operands:
    """What a case takes, in its order."""

    def __init__(self):
        self.taken = []

    def numbers(self, shape, low, high):
        k = len(self.taken)
        return [low + (high - low) * unit(k, i) for i in range(math.prod(shape))]

    def real(self, *shape, low=-1.5, high=1.5):
        x = torch.tensor(self.numbers(shape, low, high)).reshape(shape).requires_grad_()
        self.taken.append(x)
        return x

    def positive(self, *shape):
        return self.real(*shape, low=0.5, high=2.5)

    def whole(self, *shape, low, high):
        x = torch.tensor([math.floor(n) for n in self.numbers(shape, low, high)]).reshape(shape)
        self.taken.append(x)
        return x

    def ids(self, n, *shape):
        return self.whole(*shape, low=-1, high=n + 1)


CASES = []


def case(function):
    CASES.append((function.__name__, function))
    return function


def one_operand(name, of, make="real"):
    CASES.append((name + "_x", lambda o: of(getattr(o, make)(A, C))))


def two_operands(name, of, x="real", y="real"):
    CASES.append((name + "_same", lambda o: of(getattr(o, x)(A, C), getattr(o, y)(C, A).T)))


def slope(of, x):
    return torch.autograd.grad(of(x).sum(), x, create_graph=True)[0]


def gelu(x):
    return F.gelu(x, approximate="tanh")


# ---- element by element ----

for op in ("add", "sub", "mul", "maximum", "minimum", "logical_and", "logical_or", "logical_xor"):
    two_operands(op, getattr(torch, op))
two_operands("div", torch.div, y="positive")
two_operands("mod", torch.remainder, y="positive")
two_operands("floor_div", lambda x, y: torch.div(x, y, rounding_mode="floor"), y="positive")
two_operands("pow", torch.pow, x="positive")
for op, of in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"), ("equal", "eq"), ("not_equal", "ne")):
    two_operands(op, getattr(torch, of))
for op in ("neg", "exp", "square", "tanh", "sin", "cos", "relu", "sigmoid", "erf", "expm1", "abs", "sign", "floor", "ceil", "round",
           "logical_not"):
    one_operand(op, getattr(torch, op))
for op in ("log", "sqrt", "rsqrt", "log1p", "reciprocal"):
    one_operand(op, getattr(torch, op), "positive")
one_operand("is_finite", torch.isfinite)
one_operand("is_nan", torch.isnan)
one_operand("gelu", gelu)
one_operand("gelu_slope", lambda x: slope(gelu, x))
one_operand("silu", F.silu)
one_operand("hardswish", F.hardswish)
one_operand("selu", F.selu)
one_operand("softplus", F.softplus)
one_operand("elu", lambda x: F.elu(x, 0.75))
one_operand("leaky_relu", lambda x: F.leaky_relu(x, 0.25))
one_operand("clamp", lambda x: x.clamp(0, 1))
one_operand("scale", lambda x: x * -3)
one_operand("shift", lambda x: x + 4)
one_operand("stop_gradient", lambda x: x.detach())
one_operand("copy", torch.clone)


@case
def erfinv_x(o):
    return torch.erfinv(o.real(A, C, low=-0.9, high=0.9))


@case
def where_x(o):
    condition = o.whole(C, low=0, high=2)
    x, y = o.real(A, C), o.real(A)
    return torch.where(condition != 0, x, y[:, None])


@case
def cast_to_i32(o):
    return (o.real(A, C) * 7).to(torch.int32)


@case
def constant_x(o):
    return torch.full((A, C), 6.0)


@case
def iota_x(o):
    return torch.arange(B)


@case
def one_hot_x(o):
    ids = o.ids(B, A, C)
    return F.one_hot((ids + 1).clamp(0, B + 1), B + 2)[:, :, 1 : B + 1].double()


@case
def broadcast_to_x(o):
    return o.real(A, C).T[:, None, :].expand(C, B, A)


@case
def outer_x(o):
    return torch.tensordot(o.real(A), o.real(C, B), 0)


@case
def triangle_x(o):
    return torch.tril(torch.ones(A, B), 1).T


@case
def lower_triangle_x(o):
    return torch.tril(o.real(C, B, A).transpose(1, 2), 1).transpose(1, 2)


@case
def upper_triangle_x(o):
    return torch.triu(o.real(A, B, C).permute(2, 0, 1), -2).permute(1, 2, 0)


# ---- products, reductions ----


@case
def einsum_matrix(o):
    return torch.einsum("ab,bc->ac", o.real(A, B), o.real(B, C))


@case
def einsum_three(o):
    return torch.einsum("ab,bc,cd->ad", o.real(A, B), o.real(B, C), o.real(C, D))


def middle(name, of):
    CASES.append((name + "_middle", lambda o: of(o.real(A, B, C)).T))


middle("sum", lambda x: x.sum(1))
middle("max", lambda x: x.amax(1))
middle("min", lambda x: x.amin(1))
middle("prod", lambda x: x.prod(1))
middle("mean_over", lambda x: x.mean(1))
middle("variance", lambda x: x.var(1, correction=1))
one_operand("mean", torch.mean)
for op, of in (("logsumexp", torch.logsumexp), ("softmax", torch.softmax), ("log_softmax", torch.log_softmax),
               ("argmax", torch.argmax), ("argmin", torch.argmin)):
    CASES.append((op + "_last", lambda o, of=of: of(o.real(A, C), 1)))


@case
def any_rows(o):
    return o.whole(ROWS, D, low=0, high=2).any(1)


@case
def all_rows(o):
    return o.whole(ROWS, D, low=0, high=2).all(1)


@case
def cumsum_x(o):
    return o.real(A, B, D).cumsum(1)


@case
def cumprod_x(o):
    return o.positive(B, D).cumprod(0)


@case
def cummax_x(o):
    return o.real(A, B, D).cummax(1)[0]


@case
def cummin_x(o):
    return o.real(A, B, D).cummin(1)[0]


# ---- norms, losses ----


@case
def norm_stats_x(o):
    return o.real(A, B, C).mean(1)


@case
def normalized_x(o):
    x = o.real(A, B, C)
    return (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, correction=0, keepdim=True) + 0.5)


@case
def layer_norm_x(o):
    return F.layer_norm(o.real(D, C, B), (B,), o.real(B), o.real(B), 1e-5)


@case
def rms_norm_x(o):
    return F.rms_norm(o.real(A, B), (B,), o.real(B), 1e-5)


@case
def normalize_two(o):
    return F.layer_norm(o.real(A, B, C), (B, C), eps=0.25)


@case
def group_norm_x(o):
    return F.group_norm(o.real(A, MERGED, C), 4, o.real(MERGED), o.real(MERGED), 0.25)


@case
def instance_norm_x(o):
    return F.instance_norm(o.real(A, B, C)[None], weight=o.real(A), bias=o.real(A), eps=0.25)[0]


@case
def weight_norm_x(o):
    return torch._weight_norm(o.real(A, B, C), o.real(B)[None, :, None], 1)


@case
def cross_entropy_x(o):
    x, labels = o.real(A, D, B), o.whole(A, D, low=0, high=7)
    return F.cross_entropy(x.reshape(A * D, B), labels.reshape(A * D), reduction="none").reshape(A, D)


@case
def soft_cross_entropy_x(o):
    return F.cross_entropy(o.real(A, B), o.positive(B, A).T, reduction="none")


@case
def z_loss_x(o):
    return torch.logsumexp(o.real(A, B), 1) ** 2


@case
def huber_x(o):
    return F.huber_loss(o.real(A, C), o.real(C, A).T, reduction="none", delta=0.5)


@case
def sigmoid_cross_entropy_x(o):
    return F.binary_cross_entropy_with_logits(o.real(A, C), o.real(C, A, low=0, high=1).T, reduction="none")


@case
def kl_divergence_x(o):
    p, q = o.real(A, B, low=-3, high=0), o.real(B, A, low=-3, high=0)
    return F.kl_div(q.T, p, reduction="none", log_target=True).sum(1)


@case
def cosine_x(o):
    return F.cosine_similarity(o.real(A, B), o.real(B, A).T, dim=1)


# ---- space ----


@case
def conv_valid(o):
    x, w = o.real(BATCH, B, D), o.real(C, D, OUTER)
    return F.conv1d(x.transpose(1, 2), w.permute(2, 1, 0)).transpose(1, 2)


@case
def conv_transpose_x(o):
    x, w = o.real(BATCH, A, OUTER), o.real(C, D, OUTER)
    return F.conv_transpose1d(x.transpose(1, 2), w.permute(2, 1, 0), stride=2, padding=1, output_padding=1).transpose(1, 2)


@case
def max_pool_x(o):
    x = o.real(BATCH, B, TEN, D).permute(0, 3, 1, 2)
    return F.max_pool2d(x, 3, (2, 3), 1, (1, 2), ceil_mode=True).permute(0, 2, 3, 1)


@case
def average_pool_x(o):
    return F.avg_pool1d(o.real(BATCH, B, D).transpose(1, 2), 3, 2, 1).transpose(1, 2)


# ---- indices: one outside gives zeros ----


def inside(ids, n):
    return (ids >= 0) & (ids < n), ids.clamp(0, n - 1)


@case
def gather_x(o):
    table, (valid, ids) = o.real(ROWS, C), inside(o.ids(ROWS, A, D), ROWS)
    return F.embedding(ids, table) * valid[:, :, None]


@case
def pick_product_x(o):
    x, w, (valid, ids) = o.real(A, D, C), o.real(ROWS, C, B), inside(o.ids(ROWS, A, D), ROWS)
    return torch.einsum("adc,adcb->adb", x, w[ids]) * valid[:, :, None]


@case
def scatter_add_x(o):
    rows, (valid, ids) = o.real(A, D, C), inside(o.ids(ROWS, A, D), ROWS)
    return torch.zeros(ROWS, C).index_add(0, ids.flatten(), (rows * valid[:, :, None]).reshape(A * D, C))


@case
def scatter_max_x(o):
    rows, (valid, ids) = o.real(A, D, C), inside(o.ids(ROWS, A, D), ROWS)
    rows, ids = rows[valid], ids[valid][:, None].expand(-1, C)
    return torch.full((ROWS, C), -math.inf).scatter_reduce(0, ids, rows, "amax").clamp(-100, 100)


@case
def scatter_min_x(o):
    rows, (valid, ids) = o.real(C, B).T, inside(o.ids(D, B), D)
    rows, ids = rows[valid], ids[valid][:, None].expand(-1, C)
    return torch.full((D, C), math.inf).scatter_reduce(0, ids, rows, "amin").clamp(-100, 100)


@case
def segment_mean_x(o):
    rows, (valid, ids) = o.real(A, D, C), inside(o.ids(ROWS, A, D), ROWS)
    rows, ids = rows[valid], ids[valid][:, None].expand(-1, C)
    return torch.zeros(ROWS, C).scatter_reduce(0, ids, rows, "mean", include_self=False)


@case
def pick_x(o):
    x, (valid, ids) = o.real(A, B, D), inside(o.ids(B, A, D), B)
    return torch.gather(x, 1, ids[:, None, :])[:, 0] * valid


@case
def unpick_own(o):
    x, (valid, ids) = o.real(A, C, D), inside(o.ids(ROWS, C, A), ROWS)
    return torch.zeros(A, ROWS, D).scatter_add(1, ids.T[:, :, None].expand(A, C, D), x * valid.T[:, :, None])


@case
def embedding_bag_sum(o):
    table, (valid, ids) = o.real(ROWS, C), inside(o.ids(ROWS, A, D), ROWS)
    return F.embedding_bag(ids.T.contiguous(), table, per_sample_weights=valid.T.contiguous().double(), mode="sum")


@case
def count_outside_x(o):
    return (~inside(o.ids(D, A, B, C), D)[0]).sum()


@case
def histogram_rows(o):
    return torch.stack([torch.histc(row, ROWS, -1, 1.25) for row in o.real(C, LONG).detach()]).int()


# ---- order ----


@case
def order_x(o):
    return torch.argsort(o.real(A, B, D), dim=1, stable=True)[:, :C]


@case
def argsort_x(o):
    return torch.argsort(o.real(A, LONG), dim=1, stable=True)


@case
def sort_x(o):
    return torch.sort(o.real(A, B, D), 1)[0]


@case
def top_k_x(o):
    return torch.topk(o.real(A, B, D), C, 1)[0]


@case
def bottom_k_x(o):
    return torch.topk(o.real(A, B), C, 1, largest=False)[0]


@case
def quantile_low(o):
    return torch.quantile(o.real(A, B, D), 0.3, 1)


@case
def median_x(o):
    return torch.quantile(o.real(A, SIX), 0.5, 1)


# ---- attention ----


def attend(q, k, v):
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    hidden = torch.triu(torch.full((SEQ, SEQ), -math.inf), 1)
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(FEATURE) + hidden, 3), v).transpose(1, 2)


@case
def attention_causal(o):
    q, k, v = o.real(BATCH, SEQ, HEADS, FEATURE), o.real(BATCH, SEQ, HEADS, FEATURE), o.real(BATCH, HEADS, SEQ, FEATURE)
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v, is_causal=True).transpose(1, 2)


@case
def attention_grad_causal(o):
    q, k, v = o.real(BATCH, SEQ, HEADS, FEATURE), o.real(BATCH, SEQ, HEADS, FEATURE), o.real(BATCH, HEADS, SEQ, FEATURE)
    dy = o.real(BATCH, SEQ, HEADS, FEATURE)
    return torch.autograd.grad((attend(q, k, v) * dy).sum(), q, create_graph=True)[0]


# ---- shapes ----


@case
def transpose_x(o):
    return o.real(A, B, C).permute(2, 0, 1)


@case
def rename_x(o):
    return o.real(A, B).clone()


@case
def reshape_merge(o):
    return o.real(A, C, D).reshape(A, SIX)


@case
def slice_x(o):
    return o.real(A, B)[:, 2 : 2 + PART]


@case
def slice_step_x(o):
    return o.real(A, B)[:, 1::2]


@case
def split_x(o):
    return torch.split(o.real(MERGED, C), PART)[2]


@case
def unstack_x(o):
    return torch.unbind(o.real(A, B, D), 1)[3]


@case
def stack_x(o):
    return torch.stack([o.real(A, D), o.real(A, D), o.real(D, A).T])


@case
def concat_x(o):
    return torch.cat([o.real(A, B), o.real(A, C)], 1)


@case
def pad_zeros(o):
    return F.pad(o.real(A, B), (2, 1))


@case
def pad_reflect_x(o):
    return F.pad(o.real(B, D).T[None], (1, 2), mode="reflect")[0].T


@case
def dilate_x(o):
    return torch.zeros(B, A).index_copy(0, torch.arange(0, B, 3), o.real(C, A))


@case
def flip_x(o):
    return o.real(A, B).flip(1)


@case
def roll_x(o):
    return torch.roll(o.real(A, B), -9, 1)


@case
def shift_along_x(o):
    return F.pad(o.real(B, A), (0, 0, 3, 0))[:B]


def shifted(x, by, wraps=False):
    """x [rows, n], each row by its own number."""
    n = x.shape[1]
    at = torch.arange(n) - by[:, None]
    valid, ids = inside(at % n if wraps else at, n)
    return torch.gather(x, 1, ids.expand(x.shape[0], n)) * valid


@case
def shift_by_rows(o):
    x, by = o.real(A, B, D), o.ids(B, D, A)
    rows = shifted(x.permute(0, 2, 1).reshape(A * D, B), by.T.reshape(A * D))
    return rows.reshape(A, D, B).permute(0, 2, 1)


@case
def shift_by_back(o):
    x, by = o.real(B, A), o.ids(B, A)
    return shifted(x.T, -by).T


@case
def shift_by_all(o):
    x, by = o.real(A, B), o.ids(B)
    return shifted(x, (by - 4).reshape(1))


@case
def shift_by_wraps(o):
    x, by = o.real(A, B), o.ids(B, A)
    return shifted(x, -3 * by, True)


def with_diagonal(x, by):
    return x + by * torch.eye(A)


def positive_matrix(o):
    x = o.real(D, A, C)
    return with_diagonal(x @ x.mT, 2.0)


@case
def cholesky_x(o):
    return torch.linalg.cholesky(positive_matrix(o))


@case
def triangular_solve_x(o):
    a = with_diagonal(o.real(D, A, KEY) * 0.25, 2.0)
    return torch.linalg.solve_triangular(a, o.real(D, A, C), upper=False)


@case
def solve_x(o):
    a = torch.roll(with_diagonal(o.real(D, A, KEY) * 0.25, 2.0), 2, 1)
    return torch.linalg.solve(a, o.real(D, A, C))


@case
def solve_positive_x(o):
    a = positive_matrix(o)
    return torch.linalg.solve(a, o.real(A, C, D).permute(2, 0, 1)).permute(1, 2, 0)


@case
def ctc_loss_x(o):
    logits = o.real(ROWS, SEQ, C)
    labels = o.whole(ROWS, D, low=0, high=2)
    n_labels, n_times = o.whole(ROWS, low=0, high=3), o.whole(ROWS, low=3, high=6)
    logs = logits.log_softmax(2).transpose(0, 1)
    return F.ctc_loss(logs, labels, n_times, n_labels, blank=2, reduction="none")


def write(file, name, what, tensor):
    data = tensor.detach().double().flatten()
    numbers = [data.sum(), (data * data).sum(), data[0], data[len(data) // 2], data[-1]]
    file.write(" ".join([name, what] + [f"{float(x):.17g}" for x in numbers]) + "\n")


def main():
    with open(os.path.join(HERE, "ops.txt"), "w", encoding="utf-8") as file:
        for name, of in CASES:
            operands = Operands()
            y = of(operands)
            y = y.contiguous()
            if y.requires_grad:
                (y**2 / 2 + y**3 / 3).sum().backward()
            write(file, name, "y", y)
            for k, x in enumerate(operands.taken):
                if y.is_floating_point() and x.is_floating_point():
                    write(file, name, f"d{k}", x.grad if x.grad is not None else torch.zeros_like(x))


main()

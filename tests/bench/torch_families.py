"""torch_families.py: PyTorch's functions of the rows in family_rows.py; a row is made by torch_worker.op.

Each is a function of the row's sizes. Inputs are numbered as in weft/families.c.
"""
import torch
import torch.nn.functional as F

import ops
import worker

op = None  # torch_worker's: it says where tensors are, and whether functions are compiled
compiled = None


def _three(a, b, c):
    return ops.data(0, (a, b, c))


def sum(a, b, c, dim):
    return op(lambda x: x.sum(dim), _three(a, b, c))


def max(a, b, c, dim):
    return op(lambda x: x.amax(dim), _three(a, b, c))


def logsumexp(a, b, c, dim):
    return op(lambda x: torch.logsumexp(x, dim), _three(a, b, c))


def argmax(a, b, c, dim):
    return op(lambda x: x.argmax(dim), _three(a, b, c))


def cumsum(a, b, c, dim):
    return op(lambda x: x.cumsum(dim), _three(a, b, c))


def cummax(a, b, c, dim):
    return op(lambda x: x.cummax(dim).values, _three(a, b, c))


def cumprod(a, b, c, dim):
    return op(lambda x: x.cumprod(dim), worker.numbers(0, (a, b, c), 1.0, 0.02))


def transpose(a, b, c, which):
    order = ((0, 2, 1), (2, 1, 0), (1, 0, 2))[which]
    return op(lambda x: x.permute(order).contiguous(), _three(a, b, c))


def top_k(rows, columns, k):
    return op(lambda x: torch.topk(x, k), ops.data(0, (rows, columns)))


def sort(rows, columns):
    return op(lambda x: torch.sort(x), ops.data(0, (rows, columns)))


def argsort(rows, columns):
    return op(lambda x: torch.argsort(x, stable=True), ops.data(0, (rows, columns)))


def median(rows, columns):
    return op(lambda x: torch.quantile(x, 0.5, 1), ops.data(0, (rows, columns)))


def gather(table, columns, n):
    return op(lambda x, ids: F.embedding(ids, x), ops.data(0, (table, columns)), worker.indices(1, (n,), table))


def pick(rows, columns, some):
    ids = worker.indices(1, (rows, some), columns).astype("int64")
    return op(lambda x, ids: torch.gather(x, 1, ids), ops.data(0, (rows, columns)), ids)


def _given(table, columns, n):
    return ops.data(0, (n, columns)), worker.indices(1, (n,), table).astype("int64")


def scatter_add(table, columns, n):
    return op(lambda x, ids: x.new_zeros(table, columns).index_add_(0, ids, x), *_given(table, columns, n))


def scatter_max(table, columns, n):
    return op(lambda x, ids: x.new_zeros(table, columns).index_reduce_(0, ids, x, "amax"), *_given(table, columns, n))


def segment_mean(table, columns, n):
    return op(lambda x, ids: x.new_zeros(table, columns).index_reduce_(0, ids, x, "mean", include_self=False),
              *_given(table, columns, n))


def rms_norm(rows, columns):
    return op(lambda x, gain: F.rms_norm(x, (columns,), gain, 1e-5), ops.data(0, (rows, columns)), ops.vector(1, columns, 1))


def group_norm(batch, channels, places, groups):
    return op(lambda x, gain, bias: F.group_norm(x, groups, gain, bias, 1e-5), _three(batch, channels, places),
              ops.vector(1, channels, 1), ops.vector(2, channels, 0))


def batch_norm(batch, channels, places):
    return op(lambda x, gain, bias: F.batch_norm(x, None, None, gain, bias, True, 0.1, 1e-5), _three(batch, channels, places),
              ops.vector(1, channels, 1), ops.vector(2, channels, 0))


def _gradients(function, dy, *operands):
    """Forward and backward, as a training has them."""
    operands = [torch.from_numpy(x).requires_grad_() for x in operands]
    dy, function = torch.from_numpy(dy), compiled(function)
    kept = {}

    def call():
        kept["result"] = torch.autograd.grad(function(*operands), operands, dy)[0]

    call()
    return worker.Row(call, lambda: kept["result"].numpy())


def softmax_back(rows, columns):
    return _gradients(lambda x: torch.softmax(x, -1), ops.data(1, (rows, columns)), ops.data(0, (rows, columns)))


def layer_norm_back(rows, columns):
    return _gradients(lambda x, gain, bias: F.layer_norm(x, (columns,), gain, bias, 1e-5), ops.data(1, (rows, columns)),
                      ops.data(0, (rows, columns)), ops.vector(2, columns, 1), ops.vector(3, columns, 0))


def batch_norm_back(batch, channels, places):
    shape = (batch, channels, places)
    return _gradients(lambda x, gain, bias: F.batch_norm(x, None, None, gain, bias, True, 0.1, 1e-5), ops.data(1, shape),
                      ops.data(0, shape), ops.vector(2, channels, 1), ops.vector(3, channels, 0))


def rms_norm_back(rows, columns):
    return _gradients(lambda x, gain: F.rms_norm(x, (columns,), gain, 1e-5), ops.data(1, (rows, columns)),
                      ops.data(0, (rows, columns)), ops.vector(2, columns, 1))


def cross_entropy(rows, columns):
    labels = torch.from_numpy(worker.indices(1, (rows,), columns)).long()
    x = torch.from_numpy(ops.data(0, (rows, columns))).requires_grad_()
    loss_of = compiled(lambda x: F.cross_entropy(x, labels))
    kept = {}

    def call():
        loss = loss_of(x)
        kept["result"] = torch.autograd.grad(loss, x)[0]

    call()
    return worker.Row(call, lambda: kept["result"].numpy())


def dropout(rows, columns):
    row = op(lambda x: F.dropout(x, 0.5, True), worker.numbers(0, (rows, columns), 1.0, 0.0))

    def look(steps):
        for _ in range(steps):
            row.call()
        result = row.result()
        return [float(result.min()), float(result.max())]

    row.look = look
    return row


def _bf16(x):
    return torch.from_numpy(x).bfloat16()


def to_bf16(rows, columns):
    return op(lambda x: x.bfloat16(), ops.data(0, (rows, columns)))


def from_bf16(rows, columns):
    return op(lambda x: x.float(), _bf16(ops.data(0, (rows, columns))))


def to_i32(rows, columns):
    return op(lambda x: x.int(), 1000.0 * ops.data(0, (rows, columns)))


def gelu_bf16(rows, columns):
    return op(lambda x: F.gelu(x, approximate="tanh"), _bf16(ops.data(0, (rows, columns))))


def softmax_bf16(rows, columns):
    return op(lambda x: torch.softmax(x, -1), _bf16(ops.data(0, (rows, columns))))


def _updated(make, rows, columns):
    w = torch.from_numpy(ops.weight(1, (rows, columns))).requires_grad_()
    w.grad = torch.from_numpy(ops.data(0, (rows, columns)))
    return worker.Row(compiled(make([w]).step), lambda: w.detach().numpy())


def sgd(rows, columns):
    return _updated(lambda w: torch.optim.SGD(w, lr=1e-3, fused=True), rows, columns)


def momentum(rows, columns):
    return _updated(lambda w: torch.optim.SGD(w, lr=1e-3, momentum=0.9, fused=True), rows, columns)


def adam(rows, columns):
    return _updated(lambda w: torch.optim.Adam(w, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True), rows, columns)


def adafactor(rows, columns):
    return _updated(lambda w: torch.optim.Adafactor(w, lr=1e-3, weight_decay=0.0), rows, columns)

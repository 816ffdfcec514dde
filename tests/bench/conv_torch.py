"""conv_torch.py: PyTorch's rows of convolutions and pooling.

Each is made with its channels last and with them first, as PyTorch likes it, and the quicker of the two is the row.
"""
import time

import torch
import torch.nn.functional as F

import conv_ops
import worker


def _function(conv):
    flat = conv.n_dims == 2
    if conv.kind == "max_pool":
        return lambda x: F.max_pool2d(x, conv.taps, conv.stride, conv.before)
    if conv.kind == "average_pool":
        return lambda x: F.avg_pool2d(x, conv.taps, conv.stride, conv.before)
    if conv.kind == "transposed":
        return lambda x, w: F.conv_transpose2d(x, w, None, conv.stride, conv.before)
    convolve = F.conv2d if flat else F.conv3d
    return lambda x, w: convolve(x, w, None, conv.stride, conv.before, 1, conv.groups)


def _channels_first(x, conv, memory_format):
    """[batch, space.., channels..] as PyTorch has it."""
    n = conv.n_dims
    x = torch.from_numpy(x).flatten(n + 1)
    return x.permute(0, n + 1, *range(1, n + 1)).contiguous(memory_format=memory_format)


def _filter(w, conv, memory_format):
    """[taps.., channels, features] as [features, channels, taps..]; of a transposed one [channels, features, taps..]."""
    n = conv.n_dims
    w = torch.from_numpy(w)
    taps = tuple(range(n))
    if conv.kind == "depthwise":
        w = w.unsqueeze(n)  # of one channel each
        w = w.permute(n + 1, n, *taps)
    elif conv.kind == "grouped":
        w = w.permute(n, n + 2, n + 1, *taps).flatten(0, 1)
    elif conv.kind == "transposed":
        w = w.permute(n, n + 1, *taps)
    else:
        w = w.permute(n + 1, n, *taps)
    return w.contiguous(memory_format=memory_format)


def _as_x(x, conv):
    return x.detach().permute(0, *range(2, conv.n_dims + 2), 1).contiguous().numpy()


def _as_filter(w, conv):
    n, w = conv.n_dims, w.detach()
    taps = tuple(range(2, n + 2))
    if conv.kind == "grouped":
        w = w.unflatten(0, (conv_ops.GROUPS, conv.features))
        return w.permute(*range(3, n + 3), 0, 2, 1).contiguous().numpy()
    return w.permute(*taps, *((0, 1) if conv.kind == "transposed" else (1, 0))).contiguous().numpy()


def _make(conv, compiled, memory_format):
    torch._dynamo.reset()
    x, w, seed = conv_ops.begin(conv)
    x, seed = (_channels_first(t, conv, memory_format) for t in (x, seed))
    operands = [x] if w is None else [x, _filter(w, conv, memory_format)]
    wanted = operands[::-1] if conv.kind != "first" else operands[1:]
    for t in wanted:
        t.requires_grad_()
    function = compiled(_function(conv))
    kept = {}

    def call():
        y = function(*operands)
        kept["results"] = (y, *torch.autograd.grad(y, wanted, seed))

    call()
    row = worker.Row(call)

    def look(steps):
        for _ in range(steps):
            call()
        y, *gradients = kept["results"]
        shown = [_as_x(y, conv)]
        if w is not None:
            shown.append(_as_filter(gradients.pop(0), conv))
        return conv_ops.sums(shown + [_as_x(g, conv) for g in gradients])

    row.look = look
    return row


def _seconds(row, n=5):
    row.call()
    begin = time.perf_counter()
    for _ in range(n):
        row.call()
    return time.perf_counter() - begin


def make(name, compiled):
    conv = conv_ops.CONVS[name]
    last = torch.channels_last_3d if conv.n_dims == 3 else torch.channels_last
    return min((_make(conv, compiled, f) for f in (last, torch.contiguous_format)), key=_seconds)

"""conv_jax.py: JAX's rows of convolutions and pooling: channels last, as XLA's CPU likes it."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import conv_ops
import worker


def _function(conv):
    padding = ((conv.before, conv.before),) * conv.n_dims
    if conv.is_pool:
        window, strides = (1, conv.taps, conv.taps, 1), (1, conv.stride, conv.stride, 1)
        around = ((0, 0), *padding, (0, 0))
        if conv.kind == "max_pool":
            return lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, strides, around)
        return lambda x: lax.reduce_window(x, 0.0, lax.add, window, strides, around) / conv.taps**2
    names = ("NDHWC", "DHWIO", "NDHWC") if conv.n_dims == 3 else ("NHWC", "HWIO", "NHWC")
    if conv.kind == "transposed":  # what a convolution of its result gives back
        behind = conv.taps - 1 - conv.before
        return lambda x, w: lax.conv_general_dilated(
            x, w[::-1, ::-1], (1, 1), ((behind, behind),) * 2, (conv.stride, conv.stride), None, names)
    return lambda x, w: lax.conv_general_dilated(x, w, (conv.stride,) * conv.n_dims, padding, None, None, names,
                                                 conv.groups)


def _operands(conv):
    """With the channels and features of all groups in one dim."""
    x, w, seed = conv_ops.begin(conv)
    n = conv.n_dims
    x, seed = (t.reshape(*t.shape[:n + 1], -1) for t in (x, seed))
    if conv.kind == "depthwise":
        w = w.reshape(*w.shape[:n], 1, -1)
    if conv.kind == "grouped":  # [taps.., channels, group features]
        w = np.moveaxis(w, n, n + 1).reshape(*w.shape[:n], conv.channels, -1)
    return x, w, seed


def _as_filter(w, conv):
    if conv.kind != "grouped":
        return w
    n = conv.n_dims
    return np.moveaxis(w.reshape(*w.shape[:n], conv.channels, conv_ops.GROUPS, -1), n + 1, n)


def make(name):
    conv = conv_ops.CONVS[name]
    if conv.kind == "grouped":
        raise worker.Skipped("XLA's CPU takes more than half a minute for the gradient of a filter in groups")
    x, w, seed = _operands(conv)
    operands = [jnp.asarray(t) for t in ((x,) if w is None else (x, w))]
    seed = jnp.asarray(seed)
    function = _function(conv)

    def step(seed, *operands):
        if conv.kind == "first":
            y, back = jax.vjp(lambda w: function(operands[0], w), operands[1])
        else:
            y, back = jax.vjp(function, *operands)
        return y, back(seed)

    step = jax.jit(step)
    kept = {}

    def call():
        kept["results"] = jax.block_until_ready(step(seed, *operands))

    call()
    row = worker.Row(call)

    def look(steps):
        call()
        y, gradients = kept["results"]
        gradients = list(gradients)
        shown = [np.asarray(y)]
        if w is not None:
            shown.append(_as_filter(np.asarray(gradients.pop()), conv))
        return conv_ops.sums(shown + [np.asarray(g) for g in gradients])

    row.look = look
    return row

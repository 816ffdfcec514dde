"""nets_jax.py: JAX's side of nets.py."""
import jax
import jax.numpy as jnp

import gpt2
import nets
import recurrent_jax
import resnet_jax
import worker


def _dense(p, name, x):
    return x @ p[name + "/weight"] + p[name + "/bias"]


def _mlp(p, x):
    x = jax.nn.relu(_dense(p, "first", x))
    return _dense(p, "last", jax.nn.relu(_dense(p, "second", x)))


def _filtered(p, name, x):
    x = jax.lax.conv_general_dilated(x, p[name + "/weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x + p[name + "/bias"])
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _cnn(p, x):
    x = _filtered(p, "conv2", _filtered(p, "conv1", x))
    x = jnp.einsum("nrcf,rcfh->nh", x, p["first/weight"]) + p["first/bias"]
    return _dense(p, "last", jax.nn.relu(x))


def _lstm(p, name, x, first=None):
    return recurrent_jax.lstm([p[name + "/state"], p[name + "/input"], p[name + "/bias"]], x, first)


def _lstm_lm(p, tokens):
    return _dense(p, "last", _lstm(p, "lstm", p["table"][tokens])[1])


def _seq2seq(p, read, written):
    state, memory = _lstm(p, "reader", p["source"][read])
    _, h = _lstm(p, "writer", p["target"][written], state)
    scores = jnp.einsum("wbh,rbh->bwr", h, memory) / jnp.sqrt(jnp.asarray(h.shape[-1], h.dtype))
    seen = jnp.einsum("bwr,rbh->wbh", jax.nn.softmax(scores, -1), memory)
    return _dense(p, "last", jnp.tanh(_dense(p, "mix", h + seen)))


def _experts(p, letters):
    """Letters in the order of their experts, times these."""
    whole = p["table"][letters]
    x, n = whole.reshape(-1, whole.shape[-1]), nets.SIZES["experts"][-1]
    gates, ids = jax.lax.top_k(jax.nn.softmax(x @ p["mixture/router"], -1), n)
    gates, ids = (gates / gates.sum(-1, keepdims=True)).reshape(-1), ids.reshape(-1)
    order, counts = jnp.argsort(ids), jnp.bincount(ids, length=p["mixture/up"].shape[0])
    h = jax.nn.gelu(jax.lax.ragged_dot(x[order // n], p["mixture/up"], counts), approximate=True)
    made = jax.lax.ragged_dot(h, p["mixture/down"], counts) * gates[order, None]
    return _dense(p, "last", whole + jnp.zeros_like(x).at[order // n].add(made).reshape(whole.shape))


MODELS = {"mlp": _mlp, "cnn": _cnn, "lstm_lm": _lstm_lm, "resnet18": resnet_jax.resnet18, "experts": _experts,
          "seq2seq": _seq2seq}


def training(net, updated, computes):
    p = {name: jnp.asarray(a) for name, a in nets.begin(net).items()}
    m, v = ({name: jnp.zeros_like(a) for name, a in p.items()} for _ in range(2))
    *x, targets = (jnp.asarray(a) for a in nets.batch(net))
    half = lambda a: a.astype(computes) if jnp.issubdtype(a.dtype, jnp.floating) else a

    def loss_of(p, x, targets):
        logits = MODELS[net]({name: half(a) for name, a in p.items()}, *map(half, x)).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()

    def step(p, m, v, t, x, targets):
        loss, g = jax.value_and_grad(loss_of)(p, x, targets)
        new = {name: updated(p[name], m[name], v[name], g[name], t, gpt2.ADAMW,
                             gpt2.ADAMW["decay"] if nets.decays(name, p[name].shape) else 0.0) for name in p}
        return (*({name: new[name][i] for name in p} for i in range(3)), t + 1), loss

    step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    state = [p, m, v, jnp.float32(1)]
    del p, m, v

    def call():
        state[:], loss = step(*state, x, targets)
        jax.block_until_ready(state)
        return float(loss)

    return worker.Row(call, is_training=True)


def rows(updated, computes):
    return {net: lambda net=net: training(net, updated, computes) for net in nets.SIZES}

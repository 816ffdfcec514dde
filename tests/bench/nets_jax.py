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


def _lstm_lm(p, tokens):
    weights = [p["lstm/state"], p["lstm/input"], p["lstm/bias"]]
    return _dense(p, "last", recurrent_jax.lstm(weights, p["table"][tokens]))


MODELS = {"mlp": _mlp, "cnn": _cnn, "lstm_lm": _lstm_lm, "resnet18": resnet_jax.resnet18}


def training(net, updated):
    p = {name: jnp.asarray(a) for name, a in nets.begin(net).items()}
    m, v = ({name: jnp.zeros_like(a) for name, a in p.items()} for _ in range(2))
    x, targets = (jnp.asarray(a) for a in nets.batch(net))

    def loss_of(p, x, targets):
        logits = MODELS[net](p, x)
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


def rows(updated):
    return {net: lambda net=net: training(net, updated) for net in nets.SIZES}

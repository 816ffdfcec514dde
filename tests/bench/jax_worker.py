"""jax_worker.py: JAX's rows: jit, donated buffers: `jax_worker.py [--bf16] [--first ROW]`; threads are the cores it may use.

With --bf16 a training's activations and what its products read are bf16; norms, the loss and updates are f32.
"""
import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

import conv_jax
import conv_ops
import family_rows
import gpt2
import jax_families
import nets_jax
import ops
import recurrent_jax
import sizes
import worker


bf16 = "--bf16" in sys.argv
computes = jnp.bfloat16 if bf16 else jnp.float32


# ---- ops --------------------------------------------------------------------------------------------


def op(function, *operands):
    operands = [jnp.asarray(x) for x in operands]
    function = jax.jit(function)
    kept = {}

    def call():
        kept["result"] = jax.block_until_ready(function(*operands))

    call()
    return worker.Row(call, lambda: kept["result"])


def linear(name, with_gelu):
    m, k, n = (sizes.LINEAR_GELU if with_gelu else sizes.LINEAR)[name]
    x, w = ops.data(0, (m, k)), ops.weight(1, (k, n))
    if with_gelu:
        return op(lambda x, w, b: jax.nn.gelu(x @ w + b, approximate=True), x, w, ops.vector(2, n, 0))
    return op(lambda x, w: x @ w, x, w)


def norm(x, gain, bias):
    dtype, x = x.dtype, x.astype(jnp.float32)
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return ((x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias).astype(dtype)


def updated(p, m, v, g, t, o, decay):
    """AdamW's step `t` of one tensor: p, m, v."""
    m = o["beta1"] * m + (1 - o["beta1"]) * g
    v = o["beta2"] * v + (1 - o["beta2"]) * g * g
    rate = o["rate"] / (1 - o["beta1"] ** t)
    root = jnp.sqrt(v) / jnp.sqrt(1 - o["beta2"] ** t) + o["epsilon"]
    return p * (1 - o["rate"] * decay) - rate * m / root, m, v


def adamw():
    g = jnp.asarray(ops.data(0, sizes.ADAMW))
    step = jax.jit(lambda p, m, v, t, g: (*updated(p, m, v, g, t, ops.ADAMW, ops.ADAMW["decay"]), t + 1),
                   donate_argnums=(0, 1, 2, 3))
    state = [jnp.asarray(ops.weight(1, sizes.ADAMW)), jnp.zeros(sizes.ADAMW), jnp.zeros(sizes.ADAMW), jnp.float32(1)]

    def call():
        state[:] = step(*state, g)
        state[0].block_until_ready()

    return worker.Row(call, lambda: state[0])


def executor():
    def chain(x, w):
        for _ in range(sizes.EXECUTOR):
            x = jax.nn.softmax(x @ w, -1)
        return x

    return op(chain, ops.data(0, (2, 2)), ops.data(1, (2, 2)))


# ---- GPT-2 ------------------------------------------------------------------------------------------


def loss_of(row, p, tokens, targets):
    _, _, layers, _, heads, _ = sizes.GPT2[row]
    p = {name: x.astype(computes) for name, x in p.items()}
    x = p["tokens"][tokens] + p["places"]
    for layer in range(layers):
        of = lambda name: p[f"block{layer}.{name}"]
        linear = lambda name, x: x @ of(name) + of(name + ".bias")
        split = lambda x: x.reshape(*x.shape[:2], heads, -1)
        h = norm(x, of("norm1.gain"), of("norm1.bias"))
        q, k, v = (split(linear(name, h)) for name in ("query", "key", "value"))
        x = x + linear("project", jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        h = norm(x, of("norm2.gain"), of("norm2.bias"))
        x = x + linear("down", jax.nn.gelu(linear("up", h), approximate=True))
    logits = norm(x, p["norm.gain"], p["norm.bias"]) @ p["tokens"].T
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def drawn(row):
    """Initial values drawn by JAX itself, as a program of its own would."""
    def draw(key):
        keys = jax.random.split(key, len(gpt2.variables(row)))
        return {name: mean + deviation * jax.random.normal(k, shape)
                for k, (name, shape, mean, deviation) in zip(keys, gpt2.variables(row))}
    return jax.jit(draw)(jax.random.key(1))


def training(row, is_filled=True):
    p = {name: jnp.asarray(x) for name, x in gpt2.begin(row).items()} if is_filled else drawn(row)
    m, v = ({name: jnp.zeros_like(x) for name, x in p.items()} for _ in range(2))
    tokens, targets = (jnp.asarray(x) for x in gpt2.batch(row))

    def step(p, m, v, t, tokens, targets):
        loss, g = jax.value_and_grad(lambda p: loss_of(row, p, tokens, targets))(p)
        new = {name: updated(p[name], m[name], v[name], g[name], t, gpt2.ADAMW,
                             gpt2.ADAMW["decay"] if gpt2.decays(name) else 0.0) for name in p}
        return (*({name: new[name][i] for name in p} for i in range(3)), t + 1), loss

    step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    state = [p, m, v, jnp.float32(1)]
    del p, m, v  # else they would live as long as the row

    def call():
        state[:], loss = step(*state, tokens, targets)
        jax.block_until_ready(state)
        return float(loss)

    return worker.Row(call, is_training=True)


# ---- the table ----------------------------------------------------------------------------------------

rows = {name: lambda name=name: linear(name, False) for name in sizes.LINEAR}
rows.update({name: lambda name=name: linear(name, True) for name in sizes.LINEAR_GELU})
rows.update({
    "softmax": lambda: op(lambda x: jax.nn.softmax(x, -1), ops.data(0, sizes.MATRIX)),
    "layer_norm": lambda: op(norm, ops.data(0, sizes.MATRIX), ops.vector(1, sizes.MATRIX[1], 1),
                             ops.vector(2, sizes.MATRIX[1], 0)),
    "gelu": lambda: op(lambda x: jax.nn.gelu(x, approximate=True), ops.data(0, sizes.MATRIX)),
    "add": lambda: op(jnp.add, ops.data(0, sizes.MATRIX), ops.data(1, sizes.MATRIX)),
    "adamw": adamw,
    "executor": executor,
})
rows.update({name: lambda name=name: conv_jax.make(name) for name in conv_ops.CONVS})
jax_families.op = op
rows.update(family_rows.functions(jax_families))
rows.update({name: lambda name=name: training(name) for name in sizes.GPT2})
rows.update(recurrent_jax.rows())
rows.update(nets_jax.rows(updated, computes))

if "--first" in sys.argv:
    print(json.dumps({"loss": training(sys.argv[sys.argv.index("--first") + 1], is_filled=False).call()}), flush=True)
    os._exit(0)
worker.serve({"jax": jax.__version__, "jaxlib": jax.lib.__version__}, rows)

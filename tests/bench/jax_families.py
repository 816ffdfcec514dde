"""jax_families.py: JAX's functions of the rows in family_rows.py; a row is made by jax_worker.op.

Each is a function of the row's sizes. Inputs are numbered as in weft/families.c.
"""
import jax
import jax.numpy as jnp

import ops
import worker

op = None  # jax_worker's


def _three(a, b, c):
    return ops.data(0, (a, b, c))


def sum(a, b, c, dim):
    return op(lambda x: x.sum(dim), _three(a, b, c))


def max(a, b, c, dim):
    return op(lambda x: x.max(dim), _three(a, b, c))


def logsumexp(a, b, c, dim):
    return op(lambda x: jax.nn.logsumexp(x, dim), _three(a, b, c))


def argmax(a, b, c, dim):
    return op(lambda x: x.argmax(dim), _three(a, b, c))


def cumsum(a, b, c, dim):
    return op(lambda x: jnp.cumsum(x, dim), _three(a, b, c))


def cummax(a, b, c, dim):
    return op(lambda x: jax.lax.cummax(x, dim), _three(a, b, c))


def cumprod(a, b, c, dim):
    return op(lambda x: jnp.cumprod(x, dim), worker.numbers(0, (a, b, c), 1.0, 0.02))


def transpose(a, b, c, which):
    order = ((0, 2, 1), (2, 1, 0), (1, 0, 2))[which]
    return op(lambda x: jnp.transpose(x, order), _three(a, b, c))


def _first(function, *operands):
    """A row of a function whose first result is looked at."""
    row = op(function, *operands)
    both = row.result
    row.result = lambda: both()[0]
    return row


def top_k(rows, columns, k):
    return _first(lambda x: jax.lax.top_k(x, k), ops.data(0, (rows, columns)))


def sort(rows, columns):
    def both(x):
        ids = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
        return jax.lax.sort((x, ids), dimension=1, num_keys=1)

    return _first(both, ops.data(0, (rows, columns)))


def argsort(rows, columns):
    return op(lambda x: jnp.argsort(x, 1, stable=True), ops.data(0, (rows, columns)))


def median(rows, columns):
    return op(lambda x: jnp.quantile(x, 0.5, 1), ops.data(0, (rows, columns)))


def gather(table, columns, n):
    return op(lambda x, ids: x[ids], ops.data(0, (table, columns)), worker.indices(1, (n,), table))


def pick(rows, columns, some):
    return op(lambda x, ids: jnp.take_along_axis(x, ids, 1), ops.data(0, (rows, columns)),
              worker.indices(1, (rows, some), columns))


def _given(table, columns, n):
    return ops.data(0, (n, columns)), worker.indices(1, (n,), table)


def scatter_add(table, columns, n):
    return op(lambda x, ids: jax.ops.segment_sum(x, ids, table), *_given(table, columns, n))


def scatter_max(table, columns, n):
    return op(lambda x, ids: jnp.maximum(jax.ops.segment_max(x, ids, table), 0), *_given(table, columns, n))


def segment_mean(table, columns, n):
    def mean(x, ids):
        count = jax.ops.segment_sum(jnp.ones(n), ids, table)
        return jax.ops.segment_sum(x, ids, table) / jnp.maximum(count, 1)[:, None]

    return op(mean, *_given(table, columns, n))


def _rms(x, gain):
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * gain


def _normed(x, over):
    mean = x.mean(over, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.square(x - mean).mean(over, keepdims=True) + 1e-5)


def rms_norm(rows, columns):
    return op(_rms, ops.data(0, (rows, columns)), ops.vector(1, columns, 1))


def group_norm(batch, channels, places, groups):
    def norm(x, gain, bias):
        y = _normed(x.reshape(batch, groups, -1), -1).reshape(x.shape)
        return y * gain[:, None] + bias[:, None]

    return op(norm, _three(batch, channels, places), ops.vector(1, channels, 1), ops.vector(2, channels, 0))


def _batch_norm(x, gain, bias):
    return _normed(x, (0, 2)) * gain[:, None] + bias[:, None]


def batch_norm(batch, channels, places):
    return op(_batch_norm, _three(batch, channels, places),
              ops.vector(1, channels, 1), ops.vector(2, channels, 0))


def _gradients(function, dy, *operands):
    return _first(lambda dy, *operands: jax.vjp(function, *operands)[1](dy), dy, *operands)


def softmax_back(rows, columns):
    return _gradients(lambda x: jax.nn.softmax(x, -1), ops.data(1, (rows, columns)), ops.data(0, (rows, columns)))


def layer_norm_back(rows, columns):
    return _gradients(lambda x, gain, bias: _normed(x, -1) * gain + bias, ops.data(1, (rows, columns)),
                      ops.data(0, (rows, columns)), ops.vector(2, columns, 1), ops.vector(3, columns, 0))


def batch_norm_back(batch, channels, places):
    shape = (batch, channels, places)
    return _gradients(_batch_norm, ops.data(1, shape), ops.data(0, shape), ops.vector(2, channels, 1),
                      ops.vector(3, channels, 0))


def rms_norm_back(rows, columns):
    return _gradients(_rms, ops.data(1, (rows, columns)), ops.data(0, (rows, columns)), ops.vector(2, columns, 1))


def cross_entropy(rows, columns):
    def loss(x, labels):
        picked = jnp.take_along_axis(x, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(x, -1) - picked).mean()

    return op(jax.grad(loss), ops.data(0, (rows, columns)), worker.indices(1, (rows,), columns))


def dropout(rows, columns):
    state = {"key": jax.random.key(1)}

    def drop(key, x):
        key, own = jax.random.split(key)
        return key, jnp.where(jax.random.bernoulli(own, 0.5, x.shape), x / 0.5, 0)

    drop, x = jax.jit(drop), jnp.asarray(worker.numbers(0, (rows, columns), 1.0, 0.0))

    def call():
        state["key"], state["result"] = drop(state["key"], x)
        state["result"].block_until_ready()

    def look(steps):
        for _ in range(steps):
            call()
        return [float(state["result"].min()), float(state["result"].max())]

    call()
    row = worker.Row(call)
    row.look = look
    return row


def _bf16(x):
    return jnp.asarray(x).astype(jnp.bfloat16)


def to_bf16(rows, columns):
    return op(lambda x: x.astype(jnp.bfloat16), ops.data(0, (rows, columns)))


def from_bf16(rows, columns):
    return op(lambda x: x.astype(jnp.float32), _bf16(ops.data(0, (rows, columns))))


def to_i32(rows, columns):
    return op(lambda x: x.astype(jnp.int32), 1000.0 * ops.data(0, (rows, columns)))


def gelu_bf16(rows, columns):
    # in f32 and rounded once, as the others do
    return op(lambda x: jax.nn.gelu(x.astype(jnp.float32), approximate=True).astype(jnp.bfloat16),
              _bf16(ops.data(0, (rows, columns))))


def softmax_bf16(rows, columns):
    return op(lambda x: jax.nn.softmax(x.astype(jnp.float32), -1).astype(jnp.bfloat16), _bf16(ops.data(0, (rows, columns))))


def _updated(step, n_slots, rows, columns):
    """step(t, g, p, *slots) gives p and the slots anew."""
    g, shape = jnp.asarray(ops.data(0, (rows, columns))), (rows, columns)
    update = jax.jit(lambda t, g, *state: (t + 1, *step(t, g, *state)), donate_argnums=(0, *range(2, 3 + n_slots)))
    state = [jnp.float32(1), jnp.asarray(ops.weight(1, shape)), *(jnp.zeros(shape) for _ in range(n_slots))]

    def call():
        state[0], *state[1:] = update(state[0], g, *state[1:])
        state[1].block_until_ready()

    return worker.Row(call, lambda: state[1])


def sgd(rows, columns):
    return _updated(lambda t, g, p: (p - 1e-3 * g,), 0, rows, columns)


def momentum(rows, columns):
    def step(t, g, p, b):
        b = 0.9 * b + g
        return p - 1e-3 * b, b

    return _updated(step, 1, rows, columns)


def adam(rows, columns):
    def step(t, g, p, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
        root = jnp.sqrt(v) / jnp.sqrt(1 - 0.95 ** t) + 1e-8
        return p - 1e-3 / (1 - 0.9 ** t) * m / root, m, v

    return _updated(step, 2, rows, columns)


def lion(rows, columns):
    def step(t, g, p, m):
        return p - 1e-3 * jnp.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g

    return _updated(step, 1, rows, columns)

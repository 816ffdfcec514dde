"""recurrent_jax.py: JAX's side of recurrent.py: lax.scan, with the product of all elements of the sequence before it."""
import jax
import jax.numpy as jnp

import recurrent
import worker


def lstm(weights, x, first=None):
    """The states after the last element, h and c, and h after each."""
    state, inputs, bias = weights
    gates, hidden = bias.shape
    of_x = jnp.einsum("tbf,gfh->tbgh", x, inputs) + bias

    def step(carry, of_x):
        h, c = carry
        i, f, g, o = jnp.moveaxis(of_x + jnp.einsum("bf,gfh->bgh", h, state), 1, 0)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], hidden), x.dtype)
    return jax.lax.scan(step, first or (zero, zero), of_x)


def _gru(weights, x):
    state, inputs, bias, new_bias = weights
    gates, hidden = bias.shape
    of_x = jnp.einsum("tbf,gfh->tbgh", x, inputs) + bias

    def step(h, of_x):
        of_h = jnp.einsum("bf,gfh->bgh", h, state)
        r, z = jax.nn.sigmoid(of_x[:, 0] + of_h[:, 0]), jax.nn.sigmoid(of_x[:, 1] + of_h[:, 1])
        n = jnp.tanh(of_x[:, 2] + r * (of_h[:, 2] + new_bias))
        h = n + z * (h - n)
        return h, h

    return jax.lax.scan(step, jnp.zeros((x.shape[1], hidden), x.dtype), of_x)[1]


def layer(name):
    x, *weights = [jnp.asarray(a) for a in recurrent.begin(name)]
    forward = (lambda weights, x: lstm(weights, x)[1]) if recurrent.is_lstm(name) else _gru
    gradients = jax.jit(jax.grad(lambda weights, x: 0.5 * jnp.square(forward(weights, x)).sum(), argnums=(0, 1)))
    kept = {}

    def call():
        kept["gradients"] = jax.block_until_ready(gradients(weights, x))

    call()
    return worker.Row(call, lambda: kept["gradients"][0][0])


def scan():
    trips, elements = recurrent.SCAN
    x = jnp.asarray(worker.numbers(0, (elements,)))
    run = jax.jit(lambda x: jax.lax.fori_loop(0, trips, lambda _, state: jnp.tanh(state + x), x))
    kept = {}

    def call():
        kept["result"] = run(x).block_until_ready()

    call()
    return worker.Row(call, lambda: kept["result"])


def rows():
    found = {name: lambda name=name: layer(name) for name in recurrent.SIZES}
    found["scan_1000"] = scan
    return found

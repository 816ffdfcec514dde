"""resnet_jax.py: JAX's side of resnet.py."""
import jax
import jax.numpy as jnp

import resnet


def _filtered(p, name, x, stride=1):
    w = p[name + "/weight"]
    pad = (w.shape[0] - 1) // 2
    x = jax.lax.conv_general_dilated(x, w, (stride, stride), ((pad, pad),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    apart = x - x.mean((0, 1, 2))
    normal = apart * jax.lax.rsqrt(jnp.square(apart).mean((0, 1, 2)) + 1e-5)
    return normal * p[name + "/norm/gain"] + p[name + "/norm/bias"]


def resnet18(p, x):
    x = jax.nn.relu(_filtered(p, "stem/first", x))
    for name, _, _, stride in resnet.blocks():
        y = _filtered(p, name + "/second", jax.nn.relu(_filtered(p, name + "/first", x, stride)))
        x = jax.nn.relu(y + (_filtered(p, name + "/past", x, stride) if stride > 1 else x))
    return x.mean((1, 2)) @ p["last/weight"] + p["last/bias"]

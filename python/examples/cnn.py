"""cnn: two convolutions learn to tell crosses from circles and bars, then a mixture of experts reads what they saw.

    python3 cnn.py [MESH [LAYOUT]]        as cnn.py data:2 batch:data,experts:data, or row:data to split the images
"""
import sys

import numpy as np

import weft

mesh_text, layout_text = (sys.argv[1:] + ["data:2", "batch:data,experts:data"][len(sys.argv) - 1 :])[:2]

# %% Images of 16 by 16 with a shape somewhere in each, and noise
random = np.random.default_rng(5)
kinds, side = np.arange(48) % 3, 16
images = random.normal(0.0, 0.2, (48, side, side)).astype("f4")
for image, kind in zip(images, kinds):
    y, x = random.integers(1, 9, 2)
    spot = np.abs(np.arange(7) - 3)
    if kind == 0:
        image[y : y + 7, x : x + 7] += spot[:, None] == spot  # a cross
    elif kind == 1:
        image[y : y + 7, x : x + 7] += np.abs(np.hypot(spot[:, None], spot) - 3) < 0.6  # a circle
    else:
        image[y : y + 7, x + 3] += 1  # a bar

# %% The model. Where a dim of space is split, rows beside a block come from its neighbour; no line says so
batch, row, column = weft.Dim("batch", 48), weft.Dim("row", side), weft.Dim("column", side)
few, many, kind = weft.Dim("few", 6), weft.Dim("many", 12), weft.Dim("kind", 3)
g = weft.Graph(seed=1)
image, label = g.input("image", [batch, row, column]), g.input("label", [batch], "i32")


def halved(x, name, channel, features):
    taps = [weft.Dim("tap_row", 3), weft.Dim("tap_column", 3)]
    space = [weft.spatial_same(weft.dim_of(x, dim), tap, dim, 1, 1) for dim, tap in zip(("row", "column"), taps)]
    x = weft.convolution(x, name=name, spatial=space, channel=channel, features=features, activation="relu",
                         initializer="he_normal")
    return weft.max_pool(x, [weft.spatial_valid(dim.out, ("pool", 2), dim.out.name, 2, 1) for dim in space])


x = halved(halved(image, "first", None, few), "second", few, many)
place = weft.Dim("spot", 16)  # the 4 by 4 places that are left, as tokens
x = weft.reshape(x, [batch, place, many])
experts = {"token": place, "feature": many, "experts": ("experts", 4), "hidden": ("hidden", 16)}
chosen, facts = weft.experts(x, name="experts", **experts)
logits = weft.dense(weft.mean_over([batch, many], x + chosen), name="last", in_=[many], out=[kind])
loss = weft.mean(weft.cross_entropy(logits, label, kind)) + 0.01 * facts.balance
update = weft.adam(loss, rate=0.01)

# %% Training
mesh = weft.Mesh(mesh_text)
program = weft.Program(mesh, layout_text, [loss, logits, facts.balance, update])
program.write(image, images)
program.write(label, kinds)
for step in range(20, 121, 20):
    program.run(20)
    right = (program.read(logits).argmax(axis=1) == kinds).sum()
    value, balance = program.read(loss), program.read(facts.balance)
    if mesh.is_root:
        print(f"step {step:3}  loss {value:.4f}  {right:2} of 48 right  balance {balance:.2f}")

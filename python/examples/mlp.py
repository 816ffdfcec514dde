"""mlp: a perceptron learns on which of three spiral arms a point lies; then its plan is read, as data.

    python3 mlp.py [MESH [LAYOUT]]        cells as in a notebook: run it whole, or piece by piece
"""
# %% Points of three arms, a little blurred: 100 each
import sys

import numpy as np

import weft

mesh_text, layout_text = (sys.argv[1:] + ["data:2,model:2", "batch:data,hidden:model"][len(sys.argv) - 1 :])[:2]
random = np.random.default_rng(7)
arms = np.arange(300) % 3
radius = np.linspace(0.01, 1.0, 300)
angle = 2 * np.pi * (radius + arms / 3) + random.normal(0.0, 0.05, 300)
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

# %% The model: dims have names; no rank in sight
batch, plane, arm = weft.Dim("batch", 300), weft.Dim("plane", 2), weft.Dim("arm", 3)
hidden, again = weft.Dim("hidden", 64), weft.Dim("again", 64)
g = weft.Graph(seed=1)


def layer(x, name, before, after):
    w = g.variable(name, [before, after], weft.normal(0.0, (2 / before.size) ** 0.5))
    return weft.einsum([batch, after], x, w) + g.variable(name + "_bias", [after])


x = g.input("x", [batch, plane])
y = g.input("y", [batch], "i32")
h = weft.relu(layer(x, "first", plane, hidden))
h = weft.relu(layer(h, "second", hidden, again))
logits = layer(h, "third", again, arm)
loss = weft.mean(weft.cross_entropy(logits, y, arm))
update = weft.adam(loss, rate=0.01)

# %% Training
mesh = weft.Mesh(mesh_text)
say = print if mesh.is_root else lambda *text: None  # one rank of many prints
program = weft.Program(mesh, layout_text, [loss, logits, update])
program.write(x, points)
program.write(y, arms)
done = 0
for step in 1, 40, 80, 120, 160, 200:
    program.run(step - done)
    done = step
    right = (program.read(logits).argmax(axis=1) == arms).sum()
    value = program.read(loss)
    say(f"step {step:3}  loss {value:.4f}  {right:3} of 300 right")

# %% The plan: what moves between ranks in one run, and why
plan = program.plan()
say(f"{plan['ranks']} ranks, {plan['steps']} steps, {plan['flops']:.3g} flops a rank")
for move in plan["collectives"]:
    say(f"  {move['bytes']:6} bytes  {move['collective']:14} over {move['axes']}: {move['place']}, as {move['reason']}")

"""torch_reference.py: losses, gradients and optimizer steps of two small models in PyTorch float64, as text tables.

    pip install torch
    python torch_reference.py        writes mlp.txt and transformer.txt beside this script

Weights and inputs are formulas of the element's row-major index, so that the other side can make them too; the
formulas here and in reference_test.c are the same. Lines of a table, numbers as %.17g:

    OPTIMIZER loss STEP value
    OPTIMIZER norm STEP value                       norm of all gradients before clipping
    OPTIMIZER gradient VARIABLE sum squares first middle last     of step 1
    OPTIMIZER final VARIABLE sum squares            after the last step
"""

import math
import os

import torch

torch.set_default_dtype(torch.float64)
STEPS = 10
RATES = {
    "sgd": 0.1,
    "momentum": 0.05,
    "adam": 0.01,
    "adamw": 0.01,
    "nesterov": 0.05,
    "adagrad": 0.01,
    "adadelta": 1.0,
    "rmsprop": 0.01,
    "adafactor": 0.01,
    "adamax": 0.01,
}


def formula(k, *shape):
    """Variable number k: 0.3 cos((0.7 + 0.01 k) index)."""
    count = math.prod(shape)
    data = [0.3 * math.cos((0.7 + 0.01 * k) * i) for i in range(count)]
    return torch.tensor(data).reshape(shape).requires_grad_()


class Mlp:
    """relu(x w1 + b1) w2 + b2 and the mean cross-entropy of its rows."""

    BATCH, PIXEL, HIDDEN, DIGIT = 8, 784, 16, 10

    def __init__(self):
        self.variables = {
            "w1": formula(0, self.PIXEL, self.HIDDEN),
            "b1": formula(1, self.HIDDEN),
            "w2": formula(2, self.HIDDEN, self.DIGIT),
            "b2": formula(3, self.DIGIT),
        }

    def loss(self, step):
        v = self.variables
        count = self.BATCH * self.PIXEL
        x = torch.tensor([0.5 * math.cos(0.37 * i + step) for i in range(count)]).reshape(self.BATCH, self.PIXEL)
        label = torch.tensor([(3 * i + step) % self.DIGIT for i in range(self.BATCH)])
        h = torch.relu(x @ v["w1"] + v["b1"])
        return torch.nn.functional.cross_entropy(h @ v["w2"] + v["b2"], label)


class Transformer:
    """apps/gpt/model.c without dropout: pre-norm blocks, learned positions, tanh gelu, a head of its own."""

    BATCH, SEQ, LAYERS, WIDTH, HEADS, HIDDEN, VOCAB = 3, 8, 2, 12, 3, 20, 11

    def __init__(self):
        self.variables = {}
        width, kv = self.WIDTH, self.WIDTH // self.HEADS
        self.make("bytes", self.VOCAB, width)
        self.make("places", self.SEQ, width)
        for layer in range(self.LAYERS):
            block = f"block{layer}."
            self.make(block + "norm1.gain", width)
            self.make(block + "norm1.bias", width)
            self.make(block + "query", width, self.HEADS, kv)
            self.make(block + "key", width, self.HEADS, kv)
            self.make(block + "value", width, self.HEADS, kv)
            self.make(block + "project", self.HEADS, kv, width)
            self.make(block + "norm2.gain", width)
            self.make(block + "norm2.bias", width)
            self.make(block + "up", width, self.HIDDEN)
            self.make(block + "up.bias", self.HIDDEN)
            self.make(block + "down", self.HIDDEN, width)
            self.make(block + "down.bias", width)
        self.make("norm.gain", width)
        self.make("norm.bias", width)
        self.make("head", width, self.VOCAB)

    def make(self, name, *shape):
        self.variables[name] = formula(len(self.variables), *shape)

    def norm(self, x, name):
        v = self.variables
        return torch.nn.functional.layer_norm(x, (self.WIDTH,), v[name + ".gain"], v[name + ".bias"], 1e-5)

    def attention(self, x, block):
        v = self.variables
        q = torch.einsum("bse,ehk->bhsk", x, v[block + "query"])
        k = torch.einsum("bse,ehk->bhsk", x, v[block + "key"])
        w = torch.einsum("bse,ehk->bhsk", x, v[block + "value"])
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        hidden = torch.ones(self.SEQ, self.SEQ, dtype=torch.bool).triu(1)
        mixed = torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ w
        return torch.einsum("bhsk,hke->bse", mixed, v[block + "project"])

    def mlp(self, x, block):
        v = self.variables
        h = torch.nn.functional.gelu(x @ v[block + "up"] + v[block + "up.bias"], approximate="tanh")
        return h @ v[block + "down"] + v[block + "down.bias"]

    def loss(self, step):
        v = self.variables
        count = self.BATCH * self.SEQ
        tokens = torch.tensor([(i * i + 7 * i + 3 * step) % self.VOCAB for i in range(count)])
        targets = torch.tensor([(3 * i * i + 5 * i + step) % self.VOCAB for i in range(count)])
        x = v["bytes"][tokens.reshape(self.BATCH, self.SEQ)] + v["places"]
        for layer in range(self.LAYERS):
            block = f"block{layer}."
            x = x + self.attention(self.norm(x, block + "norm1"), block)
            x = x + self.mlp(self.norm(x, block + "norm2"), block)
        logits = self.norm(x, "norm") @ v["head"]
        return torch.nn.functional.cross_entropy(logits.reshape(count, self.VOCAB), targets)


def make_optimizer(name, variables):
    rate = RATES[name]
    if name == "sgd":
        return torch.optim.SGD(variables, lr=rate)
    if name == "momentum":
        return torch.optim.SGD(variables, lr=rate, momentum=0.9)
    if name == "nesterov":
        return torch.optim.SGD(variables, lr=rate, momentum=0.9, nesterov=True)
    if name == "adagrad":
        return torch.optim.Adagrad(variables, lr=rate, eps=1e-10)
    if name == "adadelta":
        return torch.optim.Adadelta(variables, lr=rate, rho=0.9, eps=1e-6)
    if name == "rmsprop":
        return torch.optim.RMSprop(variables, lr=rate, alpha=0.99, eps=1e-8)
    if name == "adamax":
        return torch.optim.Adamax(variables, lr=rate, betas=(0.9, 0.999), eps=1e-8)
    if name == "adafactor":
        return torch.optim.Adafactor(variables, lr=rate)
    if name == "adam":
        return torch.optim.Adam(variables, lr=rate, betas=(0.9, 0.999), eps=1e-8)
    groups = [
        {"params": [v for v in variables if v.dim() >= 2], "weight_decay": 0.01},
        {"params": [v for v in variables if v.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.999), eps=1e-8)


def numbers(*values):
    return " ".join("%.17g" % float(torch.as_tensor(v).detach()) for v in values)


def gradient_lines(optimizer, variables):
    for name, v in variables.items():
        g = v.grad.flatten()
        picked = numbers(g.sum(), (g * g).sum(), g[0], g[len(g) // 2], g[-1])
        yield f"{optimizer} gradient {name} {picked}"


def run(model, optimizer, clip):
    """One optimizer's lines. clip: largest norm of all gradients together; 0 for none."""
    variables = list(model.variables.values())
    update = make_optimizer(optimizer, variables)
    lines = []
    for step in range(1, STEPS + 1):
        update.zero_grad()
        loss = model.loss(step)
        loss.backward()
        if step == 1:
            lines += gradient_lines(optimizer, model.variables)
        norm = math.sqrt(sum(float((v.grad.detach() ** 2).sum()) for v in variables))
        lines.append(f"{optimizer} loss {step} {numbers(loss)}")
        lines.append(f"{optimizer} norm {step} {numbers(norm)}")
        if clip > 0:
            torch.nn.utils.clip_grad_norm_(variables, clip)
        update.step()
    for name, v in model.variables.items():
        lines.append(f"{optimizer} final {name} {numbers(v.sum(), (v * v).sum())}")
    return lines


def write(name, lines):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def main():
    write("mlp.txt", [line for name in RATES for line in run(Mlp(), name, 0.0)])
    lines = run(Transformer(), "sgd", 0.0) + run(Transformer(), "adamw", 0.5)
    write("transformer.txt", lines)


if __name__ == "__main__":
    main()

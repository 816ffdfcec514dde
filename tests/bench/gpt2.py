"""gpt2.py: the model of weft/gpt2.c as the peers need to know it: its rows, its variables in their order, and what they
and the inputs begin with."""
import math

import sizes
import worker

GPT2 = {**sizes.GPT2, **sizes.DEVICE_GPT2}

ADAMW = {"rate": 3e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "decay": 0.1}


def variables(row):
    """(name, shape, mean, deviation) of each, as Weft makes them: [in, out]; heads times kv are one dim here."""
    _, seq, layers, width, _, vocab = GPT2[row]
    narrow, residual = 0.02, 0.02 / math.sqrt(2 * layers)
    linears = [("query", width, width, narrow), ("key", width, width, narrow), ("value", width, width, narrow),
               ("project", width, width, residual), ("up", width, 4 * width, narrow),
               ("down", 4 * width, width, residual)]
    made = [("tokens", (vocab, width), 0, narrow), ("places", (seq, width), 0, narrow)]

    def norm(name):
        made.extend([(name + ".gain", (width,), 1, 0), (name + ".bias", (width,), 0, 0)])

    for layer in range(layers):
        for i, (name, n_in, n_out, deviation) in enumerate(linears):
            if name in ("query", "up"):
                norm(f"block{layer}.norm{1 if i == 0 else 2}")
            made.append((f"block{layer}.{name}", (n_in, n_out), 0, deviation))
            made.append((f"block{layer}.{name}.bias", (n_out,), 0, 0))
    norm("norm")
    return made


def decays(name):
    """Matrices do, and the biases of query, key and value, which have two dims (heads, kv)."""
    is_vector = name.endswith((".bias", ".gain"))
    return not is_vector or name.endswith(("query.bias", "key.bias", "value.bias"))


def begin(row):
    """name -> array: what every worker's variables hold before the first step."""
    scale = lambda deviation: math.sqrt(3.0) * deviation if deviation else 0.02
    return {name: worker.numbers(2 + k, shape, mean, scale(deviation))
            for k, (name, shape, mean, deviation) in enumerate(variables(row))}


def batch(row):
    n, seq, _, _, _, vocab = GPT2[row]
    return worker.indices(0, (n, seq), vocab), worker.indices(1, (n, seq), vocab)

"""recurrent_torch.py: PyTorch's side of recurrent.py: nn.LSTM and nn.GRU, whose kernels are PyTorch's own."""
import torch

import recurrent
import worker


def _module(name, x, weights):
    """The layer with Weft's numbers: its two biases are one there, but for that of a GRU's state."""
    _, _, features, hidden = recurrent.SIZES[name]
    layer = (torch.nn.LSTM if recurrent.is_lstm(name) else torch.nn.GRU)(features, hidden)
    flat = lambda w: torch.from_numpy(w).transpose(1, 2).reshape(-1, w.shape[1])
    with torch.no_grad():
        layer.weight_hh_l0.copy_(flat(weights[0]))
        layer.weight_ih_l0.copy_(flat(weights[1]))
        layer.bias_ih_l0.copy_(torch.from_numpy(weights[2]).reshape(-1))
        layer.bias_hh_l0.zero_()
        if len(weights) > 3:
            layer.bias_hh_l0[2 * hidden:].copy_(torch.from_numpy(weights[3]))
    return layer


def layer(name, compiled):
    torch._dynamo.reset()
    x, *weights = recurrent.begin(name)
    _, _, _, hidden = recurrent.SIZES[name]
    gates = weights[0].shape[0]
    module, x = _module(name, x, weights), torch.from_numpy(x).requires_grad_()
    forward, kept = compiled(module), {}
    wanted = [*module.parameters(), x]
    position = [n for n, _ in module.named_parameters()].index("weight_hh_l0")

    def call():
        y, _ = forward(x)
        kept["gradients"] = torch.autograd.grad(0.5 * (y * y).sum(), wanted)

    call()
    return worker.Row(call, lambda: kept["gradients"][position].reshape(gates, hidden, hidden).transpose(1, 2).numpy())


def scan(compiled):
    trips, elements = recurrent.SCAN
    x = torch.from_numpy(worker.numbers(0, (elements,)))
    if compiled is not None:
        raise worker.Skipped("a loop of 1,000 trips in one function takes inductor many minutes")
    kept = {}

    def call():
        state = x
        with torch.inference_mode():
            for _ in range(trips):
                state = torch.tanh(state + x)
        kept["result"] = state

    call()
    return worker.Row(call, lambda: kept["result"].numpy())


def rows(compiled, is_compiled):
    found = {name: lambda name=name: layer(name, compiled) for name in recurrent.SIZES}
    found["scan_1000"] = lambda: scan(compiled if is_compiled else None)
    return found

"""torch_recurrent.py: LSTM and GRU and their gradients in PyTorch float64, as a text table.

    pip install torch
    python torch_recurrent.py        writes recurrent.txt beside this script

Variables are formulas of the element's row-major index, as Weft has their dims; the formulas and the cases here and in
recurrent_test.c are the same. The loss is half the sum of the squares of all states of all trips, and of the last states.
Lines of the table, numbers as %.17g:

    CASE OUTPUT sum squares first middle last        of y, h, c; of the gradients of x and of the layer's variables
"""

import math
import os

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.set_default_dtype(torch.float64)
TIME, BATCH, FEATURE, HIDDEN = 7, 3, 4, 5
LENGTHS = torch.tensor([7, 5, 3])


def formula(frequency, *shape):
    data = [math.cos(frequency * i) for i in range(math.prod(shape))]
    return torch.tensor(data).reshape(shape)


def variables(gates, ways, is_gru):
    """As Weft has them: [way, gate, feature, hidden]."""
    made = {
        "input": 0.5 * formula(1.3, ways, gates, FEATURE, HIDDEN),
        "state": 0.5 * formula(1.3, ways, gates, HIDDEN, HIDDEN),
        "bias": 0.25 * formula(0.9, ways, gates, HIDDEN),
    }
    if is_gru:
        made["new_bias"] = 0.25 * formula(0.9, ways, HIDDEN)
    return made


def fill(net, mine, gates, ways, is_gru):
    with torch.no_grad():
        for way in range(ways):
            end = "_l0_reverse" if way else "_l0"
            for name, to in (("input", "weight_ih"), ("state", "weight_hh")):
                getattr(net, to + end).copy_(mine[name][way].transpose(1, 2).reshape(gates * HIDDEN, -1))
            getattr(net, "bias_ih" + end).copy_(mine["bias"][way].reshape(-1))
            of_state = torch.zeros(gates, HIDDEN)
            if is_gru:
                of_state[2] = mine["new_bias"][way]
            getattr(net, "bias_hh" + end).copy_(of_state.reshape(-1))


def gradients(net, gates, ways, is_gru):
    ends = ["_l0", "_l0_reverse"][:ways]

    def stacked(name, width):
        return torch.stack([getattr(net, name + end).grad.reshape(gates, HIDDEN, width).transpose(1, 2) for end in ends])

    made = {
        "input": stacked("weight_ih", FEATURE),
        "state": stacked("weight_hh", HIDDEN),
        "bias": torch.stack([getattr(net, "bias_ih" + end).grad for end in ends]),
    }
    if is_gru:
        made["new_bias"] = torch.stack([getattr(net, "bias_hh" + end).grad.reshape(gates, HIDDEN)[2] for end in ends])
    return made


def line(case, what, tensor):
    data = tensor.detach().flatten()
    numbers = [data.sum(), (data * data).sum(), data[0], data[len(data) // 2], data[-1]]
    return " ".join([case, what] + [f"{float(x):.17g}" for x in numbers]) + "\n"


def run(file, case, is_gru, ways, is_packed, is_begun):
    gates = 3 if is_gru else 4
    net = (torch.nn.GRU if is_gru else torch.nn.LSTM)(FEATURE, HIDDEN, bidirectional=ways == 2)
    fill(net, variables(gates, ways, is_gru), gates, ways, is_gru)
    x = formula(0.7, TIME, BATCH, FEATURE).requires_grad_()
    first = formula(0.3, BATCH, HIDDEN).unsqueeze(0)
    begin = ((first if is_gru else (first, 0.5 * first)),) if is_begun else ()
    y, last = net(pack_padded_sequence(x, LENGTHS) if is_packed else x, *begin)
    if is_packed:
        y, _ = pad_packed_sequence(y)
    states = {"h": last} if is_gru else {"h": last[0], "c": last[1]}
    (0.5 * sum((s * s).sum() for s in [y, *states.values()])).backward()
    file.write(line(case, "y", y))
    for name, state in states.items():
        file.write(line(case, name, state.transpose(0, 1)))
    file.write(line(case, "x", x.grad))
    for name, gradient in gradients(net, gates, ways, is_gru).items():
        file.write(line(case, name, gradient))


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurrent.txt"), "w", encoding="utf-8") as file:
        for kind in ("lstm", "gru"):
            run(file, kind, kind == "gru", 1, False, False)
            run(file, kind + "_begun", kind == "gru", 1, False, True)
            run(file, kind + "_both", kind == "gru", 2, False, False)
            run(file, kind + "_packed", kind == "gru", 2, True, False)


main()

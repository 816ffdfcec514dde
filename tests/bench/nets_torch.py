"""nets_torch.py: PyTorch's side of nets.py."""
import torch
import torch.nn.functional as F

import gpt2
import nets
import resnet_torch
import worker


def _linear(w, b):
    layer = torch.nn.Linear(w.shape[0], w.shape[1])
    return _with(layer, torch.from_numpy(w).t(), torch.from_numpy(b))


def _with(layer, weight, bias):
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def _convolution(w, b):
    layer = torch.nn.Conv2d(w.shape[2], w.shape[3], 3, padding=1)
    return _with(layer, torch.from_numpy(w).permute(3, 2, 0, 1), torch.from_numpy(b))


class MLP(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layers = torch.nn.ModuleList(_linear(p[n + "/weight"], p[n + "/bias"]) for n in ("first", "second", "last"))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class CNN(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.filters = torch.nn.ModuleList(_convolution(p[n + "/weight"], p[n + "/bias"]) for n in ("conv1", "conv2"))
        first = p["first/weight"].transpose(2, 0, 1, 3).reshape(-1, p["first/weight"].shape[3]).copy()
        self.first, self.last = _linear(first, p["first/bias"]), _linear(p["last/weight"], p["last/bias"])

    def forward(self, x):
        x = x.permute(0, 3, 1, 2)
        for layer in self.filters:
            x = F.max_pool2d(F.relu(layer(x)), 2)
        return self.last(F.relu(self.first(x.flatten(1))))


class LanguageModel(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        letters, embed = p["table"].shape
        hidden = p["last/weight"].shape[0]
        self.table, self.lstm = torch.nn.Embedding(letters, embed), torch.nn.LSTM(embed, hidden)
        flat = lambda w: torch.from_numpy(w).transpose(1, 2).reshape(-1, w.shape[1])
        with torch.no_grad():
            self.table.weight.copy_(torch.from_numpy(p["table"]))
            self.lstm.weight_hh_l0.copy_(flat(p["lstm/state"]))
            self.lstm.weight_ih_l0.copy_(flat(p["lstm/input"]))
            self.lstm.bias_ih_l0.copy_(torch.from_numpy(p["lstm/bias"]).reshape(-1))
            self.lstm.bias_hh_l0.zero_()
        self.lstm.bias_hh_l0.requires_grad_(False)  # Weft has one bias
        self.last = _linear(p["last/weight"], p["last/bias"])

    def forward(self, tokens):
        return self.last(self.lstm(self.table(tokens))[0])


MODELS = {"mlp": MLP, "cnn": CNN, "lstm_lm": LanguageModel, "resnet18": resnet_torch.ResNet}


def training(net, compiled, optimizer):
    torch._dynamo.reset()
    model = MODELS[net](nets.begin(net))
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decays = lambda name, p: p.dim() > 1 or name == "lstm.bias_ih_l0"  # [gate, hidden] in Weft
    update = optimizer([{"params": [p for name, p in trained if decays(name, p)]},
                        {"params": [p for name, p in trained if not decays(name, p)], "weight_decay": 0.0}], gpt2.ADAMW)
    x, targets = (torch.from_numpy(a) for a in nets.batch(net))
    if net == "lstm_lm":
        x = x.long()
    targets, forward = targets.long().reshape(-1), compiled(model)

    def step():
        update.zero_grad(set_to_none=True)
        logits = forward(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets)
        loss.backward()
        update.step()
        return loss.item()

    return worker.Row(step, is_training=True)


def rows(compiled, optimizer):
    return {net: lambda net=net: training(net, compiled, optimizer) for net in nets.SIZES}

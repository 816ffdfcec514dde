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


def _table(w):
    return torch.nn.Embedding.from_pretrained(torch.from_numpy(w), freeze=False)


def _lstm(p, name):
    _, embed, hidden = p[name + "/input"].shape
    lstm = torch.nn.LSTM(embed, hidden)
    flat = lambda w: torch.from_numpy(w).transpose(1, 2).reshape(-1, w.shape[1])
    with torch.no_grad():
        lstm.weight_hh_l0.copy_(flat(p[name + "/state"]))
        lstm.weight_ih_l0.copy_(flat(p[name + "/input"]))
        lstm.bias_ih_l0.copy_(torch.from_numpy(p[name + "/bias"]).reshape(-1))
        lstm.bias_hh_l0.zero_()
    lstm.bias_hh_l0.requires_grad_(False)  # Weft has one bias
    return lstm


class LanguageModel(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.table, self.lstm = _table(p["table"]), _lstm(p, "lstm")
        self.last = _linear(p["last/weight"], p["last/bias"])

    def forward(self, tokens):
        return self.last(self.lstm(self.table(tokens))[0])


class Translator(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.source, self.target = _table(p["source"]), _table(p["target"])
        self.reader, self.writer = _lstm(p, "reader"), _lstm(p, "writer")
        self.mix, self.last = (_linear(p[n + "/weight"], p[n + "/bias"]) for n in ("mix", "last"))

    def forward(self, read, written):
        memory, state = self.reader(self.source(read))
        h, _ = self.writer(self.target(written), state)
        h, memory = h.transpose(0, 1), memory.transpose(0, 1)
        seen = F.scaled_dot_product_attention(h, memory, memory)
        return self.last(torch.tanh(self.mix(h + seen))).transpose(0, 1)


class Mixture(torch.nn.Module):
    """Expert by expert, with the letters that chose it."""

    def __init__(self, p):
        super().__init__()
        self.table = _table(p["table"])
        self.router, self.up, self.down = (torch.nn.Parameter(torch.from_numpy(p["mixture/" + n]))
                                           for n in ("router", "up", "down"))
        self.last = _linear(p["last/weight"], p["last/bias"])

    def forward(self, letters):
        whole = self.table(letters)
        x = whole.flatten(0, 1)
        gates, ids = torch.softmax(x @ self.router, -1).topk(nets.SIZES["experts"][-1])
        gates, y = gates / gates.sum(-1, keepdim=True), torch.zeros_like(x)
        for e in range(self.up.shape[0]):
            letter, choice = torch.where(ids == e)
            made = F.gelu(x[letter] @ self.up[e], approximate="tanh") @ self.down[e]
            y = y.index_add(0, letter, made * gates[letter, choice, None])
        return self.last(whole + y.view_as(whole))


MODELS = {"mlp": MLP, "cnn": CNN, "lstm_lm": LanguageModel, "resnet18": resnet_torch.ResNet, "experts": Mixture,
          "seq2seq": Translator}


def training(net, compiled, optimizer, is_half):
    torch._dynamo.reset()
    model = MODELS[net](nets.begin(net))
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decays = lambda name, p: p.dim() > 1 or name.endswith("bias_ih_l0")  # [gate, hidden] in Weft
    update = optimizer([{"params": [p for name, p in trained if decays(name, p)]},
                        {"params": [p for name, p in trained if not decays(name, p)], "weight_decay": 0.0}], gpt2.ADAMW)
    *x, targets = (torch.from_numpy(a) for a in nets.batch(net))
    x = [of if of.is_floating_point() else of.long() for of in x]
    targets, forward = targets.long().reshape(-1), compiled(model)

    def step():
        update.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            logits = forward(*x)
        loss = F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), targets)
        loss.backward()
        update.step()
        return loss.item()

    return worker.Row(step, is_training=True)


def rows(compiled, optimizer, is_half):
    return {net: lambda net=net: training(net, compiled, optimizer, is_half) for net in nets.SIZES}

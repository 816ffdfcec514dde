"""resnet_torch.py: PyTorch's side of resnet.py; channels last, as its fastest kernels of processors want them."""
import torch
import torch.nn.functional as F

import resnet


def _norm(p, name, features):
    norm = torch.nn.BatchNorm2d(features, track_running_stats=False)
    with torch.no_grad():
        norm.weight.copy_(torch.from_numpy(p[name + "/norm/gain"]))
        norm.bias.copy_(torch.from_numpy(p[name + "/norm/bias"]))
    return norm


def _filtered(p, name, taps, channels, features, stride):
    conv = torch.nn.Conv2d(channels, features, taps, stride, (taps - 1) // 2, bias=False)
    with torch.no_grad():
        conv.weight.copy_(torch.from_numpy(p[name + "/weight"]).permute(3, 2, 0, 1))
    return torch.nn.Sequential(conv, _norm(p, name, features))


class Block(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.first, self.second = parts["first"], parts["second"]
        self.past = parts.get("past", torch.nn.Identity())

    def forward(self, x):
        return F.relu(self.past(x) + self.second(F.relu(self.first(x))))


class ResNet(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        parts = {}
        for name, *sizes in resnet.filters():
            of, part = name.split("/")
            parts.setdefault(of, {})[part] = _filtered(p, name, *sizes)
        self.stem = parts["stem"]["first"]
        self.blocks = torch.nn.Sequential(*(Block(parts[name]) for name, *_ in resnet.blocks()))
        self.last = torch.nn.Linear(*p["last/weight"].shape)
        with torch.no_grad():
            self.last.weight.copy_(torch.from_numpy(p["last/weight"]).t())
            self.last.bias.copy_(torch.from_numpy(p["last/bias"]))
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        x = self.blocks(F.relu(self.stem(x.permute(0, 3, 1, 2))))
        return self.last(x.mean((2, 3)))

"""torch_worker.py: PyTorch's rows: `torch_worker.py [--compile] [--ddp] [--first ROW]`, threads by OMP_NUM_THREADS.

With --ddp it starts its second process itself; ranks speak by gloo. `--device cuda [--bf16] [--graphs]` is for device.py: there
trainings are autocast to bf16, and what is compiled is kept as CUDA graphs.
"""
import argparse
import json
import math
import os
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F

import conv_ops
import conv_torch
import family_rows
import gpt2
import nets_torch
import ops
import recurrent_torch
import sizes
import torch_families
import worker

arguments = argparse.ArgumentParser()
arguments.add_argument("--compile", action="store_true")
arguments.add_argument("--ddp", action="store_true")
arguments.add_argument("--first")
arguments.add_argument("--device", default="cpu")
arguments.add_argument("--bf16", action="store_true")
arguments.add_argument("--graphs", action="store_true")
arguments = arguments.parse_args()
compiled = (lambda function: torch.compile(function, mode="reduce-overhead" if arguments.graphs else None)
            ) if arguments.compile else lambda function: function
wait = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None


def there(x):
    return (x if isinstance(x, torch.Tensor) else torch.from_numpy(x)).to(arguments.device)


# ---- ops --------------------------------------------------------------------------------------------


def op(function, *operands, out=None):
    """A row of one op; `out` is memory for its result, where the op takes it."""
    torch._dynamo.reset()  # shapes of earlier rows make no code of this row's general
    operands = [there(x) for x in operands]
    function = compiled(function)
    kept = {}

    def call():
        with torch.inference_mode():
            kept["result"] = function(*operands)
        wait()

    def result():  # of several the first
        of = kept["result"]
        return (of if isinstance(of, torch.Tensor) else of[0]).float().cpu().numpy()

    call()
    return worker.Row(call, result)


def linear(name, with_gelu):
    m, k, n = (sizes.LINEAR_GELU if with_gelu else sizes.LINEAR)[name]
    x, w = ops.data(0, (m, k)), ops.weight(1, (k, n)).T.copy()
    if with_gelu:
        return op(lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), x, w, ops.vector(2, n, 0))
    return op(F.linear, x, w)


def large_product():
    """The most that this GPU multiplies: bf16, where the row is asked for so."""
    dtype = torch.bfloat16 if arguments.bf16 else torch.float32
    m, k, n = sizes.DEVICE_PRODUCT
    x, w = (torch.randn(shape, device=arguments.device, dtype=dtype) for shape in ((m, k), (k, n)))

    def call():
        torch.mm(x, w)
        wait()

    return worker.Row(call, lambda: np.ones(1))


def large_copy():
    x = torch.randn(sizes.DEVICE_MATRIX, device=arguments.device)
    y = torch.empty_like(x)

    def call():
        y.copy_(x)
        wait()

    return worker.Row(call, lambda: np.ones(1))


def layer_norm():
    n = sizes.MATRIX[1]
    return op(lambda x, gain, bias: F.layer_norm(x, (n,), gain, bias, 1e-5), ops.data(0, sizes.MATRIX),
              ops.vector(1, n, 1), ops.vector(2, n, 0))


def add():
    if arguments.compile:
        return op(torch.add, ops.data(0, sizes.MATRIX), ops.data(1, sizes.MATRIX))
    result = torch.empty(sizes.MATRIX)
    return op(lambda x, y: torch.add(x, y, out=result), ops.data(0, sizes.MATRIX), ops.data(1, sizes.MATRIX))


def optimizer(groups, o):
    return torch.optim.AdamW(groups, lr=o["rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                             weight_decay=o["decay"], fused=True)


def adamw():
    w = torch.from_numpy(ops.weight(1, sizes.ADAMW)).requires_grad_()
    w.grad = torch.from_numpy(ops.data(0, sizes.ADAMW))
    return worker.Row(compiled(optimizer([w], ops.ADAMW).step), lambda: w.detach().numpy())


def executor():
    if arguments.compile:
        raise worker.Skipped("1,000 ops in one function take inductor many minutes")

    def chain(x, w):
        for _ in range(sizes.EXECUTOR):
            x = torch.softmax(x @ w, -1)
        return x

    return op(chain, ops.data(0, (2, 2)), ops.data(1, (2, 2)))


# ---- GPT-2 ------------------------------------------------------------------------------------------


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        split = lambda y: y.view(batch, seq, self.heads, -1).transpose(1, 2)
        q, k, v = map(split, self.qkv(self.norm1(x)).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(torch.nn.Module):
    def __init__(self, row):
        super().__init__()
        _, seq, layers, width, heads, vocab = gpt2.GPT2[row]
        self.tokens, self.places = torch.nn.Embedding(vocab, width), torch.nn.Embedding(seq, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                is_residual = name.endswith(("project.weight", "down.weight"))
                torch.nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * layers) if is_residual else 0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.tokens.weight.t()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def fill(model, row):
    """What gpt2.begin says, in PyTorch's places: [out, in], and q, k, v in one."""
    begin = {name: torch.from_numpy(x) for name, x in gpt2.begin(row).items()}
    modules = {name: module for name, module in model.named_modules()}
    with torch.no_grad():
        model.tokens.weight.copy_(begin["tokens"])
        model.places.weight.copy_(begin["places"])
        for name, module in modules.items():
            ours = name.replace("blocks.", "block")
            parts = [ours.replace("qkv", part) for part in ("query", "key", "value")] if "qkv" in ours else [ours]
            if isinstance(module, torch.nn.Linear):
                module.weight.copy_(torch.cat([begin[part].t() for part in parts]))
                module.bias.copy_(torch.cat([begin[part + ".bias"] for part in parts]))
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.copy_(begin[ours + ".gain"])
                module.bias.copy_(begin[ours + ".bias"])


def training(row, is_filled=True):
    model = GPT2(row)
    if is_filled:
        fill(model, row)
    model = model.to(arguments.device)
    decays = lambda name, p: p.dim() == 2 or name.endswith("qkv.bias")
    named = list(model.named_parameters())
    groups = [{"params": [p for name, p in named if decays(name, p)]},
              {"params": [p for name, p in named if not decays(name, p)], "weight_decay": 0.0}]
    update = optimizer(groups, gpt2.ADAMW)
    tokens, targets = (there(x).long() for x in gpt2.batch(row))
    if arguments.ddp:
        rank, n = torch.distributed.get_rank(), torch.distributed.get_world_size()
        tokens, targets = tokens.chunk(n)[rank], targets.chunk(n)[rank]
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    forward = compiled(model)

    def step():
        update.zero_grad(set_to_none=True)
        with torch.autocast(arguments.device, torch.bfloat16, enabled=arguments.bf16):
            loss = forward(tokens, targets)
        loss.backward()
        update.step()
        loss = loss.detach()
        if arguments.ddp:
            torch.distributed.all_reduce(loss)
            loss /= torch.distributed.get_world_size()
        return loss.item()

    return worker.Row(step, is_training=True)


# ---- between processes --------------------------------------------------------------------------------


def all_reduce(n_bytes):
    data = torch.zeros(n_bytes // 4)

    def look(steps):
        data.fill_(float(torch.distributed.get_rank() + 1))
        for _ in range(steps):
            torch.distributed.all_reduce(data)
        numbers = worker.sums(data.numpy())
        data.zero_()  # a sum in place of anything else soon is infinite
        return numbers

    row = worker.Row(lambda: torch.distributed.all_reduce(data))
    row.look = look
    return row


def join():
    """Two processes of one job; the second is this program again."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        environment = {**os.environ, "RANK": "1", "MASTER_PORT": str(store.port)}
        subprocess.Popen([sys.executable] + sys.argv, env=environment, stdin=subprocess.DEVNULL)
    else:
        store = torch.distributed.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    return rank


def share(line):
    lines = [line]
    torch.distributed.broadcast_object_list(lines, 0)
    return lines[0]


# ---- the table ----------------------------------------------------------------------------------------

rows = {name: lambda name=name: linear(name, False) for name in sizes.LINEAR}
rows.update({name: lambda name=name: linear(name, True) for name in sizes.LINEAR_GELU})
rows.update({
    "softmax": lambda: op(lambda x: torch.softmax(x, -1), ops.data(0, sizes.MATRIX)),
    "layer_norm": layer_norm,
    "gelu": lambda: op(lambda x: F.gelu(x, approximate="tanh"), ops.data(0, sizes.MATRIX)),
    "add": add,
    "adamw": adamw,
    "executor": executor,
})
rows.update({name: lambda name=name: conv_torch.make(name, compiled) for name in conv_ops.CONVS})
rows.update({name: lambda name=name: training(name) for name in gpt2.GPT2})
torch_families.op, torch_families.compiled = op, compiled
rows.update(family_rows.functions(torch_families))
rows.update(recurrent_torch.rows(compiled, arguments.compile))
rows.update(nets_torch.rows(compiled, optimizer, arguments.bf16))
rows.update({"large_product": large_product, "large_copy": large_copy})

if arguments.first:
    print(json.dumps({"loss": training(arguments.first, is_filled=False).call()}), flush=True)
    os._exit(0)
about = {"torch": torch.__version__, "threads": torch.get_num_threads()}
if arguments.ddp:
    rows.update({name: lambda n=n: all_reduce(n) for name, n in sizes.ALL_REDUCE.items()})
    worker.serve(about, rows, share=share, is_asked=join() == 0)
    os._exit(0)
worker.serve(about, rows)

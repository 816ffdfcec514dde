"""hugging.py: models with random weights, in the files and by the names that Hugging Face's have, and what they compute, in PyTorch.

Each forward is written from the paper's formulas, and shares nothing with Weft but the file.
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
ACTIVATIONS = {"gelu_new": lambda x: F.gelu(x, approximate="tanh"), "gelu": F.gelu, "silu": F.silu, "relu": F.relu}


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    types = {text: dtype for dtype, text in TYPES.items()}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {name: torch.frombuffer(bytearray(data[slice(*t["data_offsets"])]), dtype=types[t["dtype"]]).reshape(t["shape"])
               for name, t in header.items()}
    return tensors, metadata


def write_model(folder, config, tensors, shards=1):
    """A folder as Hugging Face's have it; of several shards one has every so manieth tensor."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    if shards == 1:
        return write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    names = [f"model-{s + 1:05}-of-{shards:05}.safetensors" for s in range(shards)]
    of = {name: names[i % shards] for i, name in enumerate(tensors)}
    for file in names:
        write_safetensors(os.path.join(folder, file), {name: t for name, t in tensors.items() if of[name] == file})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": 0}, "weight_map": of}, file)


class Weights:
    """Random numbers of a seed, large enough that every part of a model counts."""

    def __init__(self, seed, dtype=torch.float32):
        self.random, self.dtype, self.tensors = torch.Generator().manual_seed(seed), dtype, {}

    def add(self, name, *shape, around=0.0, by=0.15):
        self.tensors[name] = (around + by * torch.randn(*shape, generator=self.random)).to(self.dtype)

    def norm(self, name, width, has_bias=True):
        self.add(f"{name}.weight", width, around=1.0)
        if has_bias:
            self.add(f"{name}.bias", width)

    def linear(self, name, n_out, n_in, has_bias=True):
        self.add(f"{name}.weight", n_out, n_in)
        if has_bias:
            self.add(f"{name}.bias", n_out)


def attend(q, k, v, is_causal):
    """[heads, rows, feature]"""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = scores + torch.full(scores.shape[-2:], -math.inf, dtype=q.dtype).triu(1)
    return scores.softmax(-1) @ v


def split(x, heads):
    return x.reshape(x.shape[0], heads, -1).transpose(0, 1)


def joined(x):
    return x.transpose(0, 1).reshape(x.shape[1], -1)


# ---- GPT-2: Radford et al. 2019 -------------------------------------------------------------------------------------------------


def gpt2(seed=1, dtype=torch.float32, vocab=256, width=24, heads=3, layers=2, places=20, activation="gelu_new", epsilon=1e-5, has_head=False,
         prefix=""):
    config = {"model_type": "gpt2", "n_embd": width, "n_head": heads, "n_layer": layers, "n_positions": places, "vocab_size": vocab,
              "activation_function": activation, "layer_norm_epsilon": epsilon}
    w = Weights(seed, dtype)
    w.add("wte.weight", vocab, width)
    w.add("wpe.weight", places, width)
    for i in range(layers):
        w.norm(f"h.{i}.ln_1", width)
        for name, n_in, n_out in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width), ("mlp.c_fc", width, 4 * width),
                                  ("mlp.c_proj", 4 * width, width)):
            w.linear(f"h.{i}.{name}", n_in, n_out, has_bias=False)  # of Conv1D: [in, out]
            w.add(f"h.{i}.{name}.bias", n_out)
        w.norm(f"h.{i}.ln_2", width)
    w.norm("ln_f", width)
    tensors = {prefix + name: tensor for name, tensor in w.tensors.items()}
    if has_head:
        w.add("lm_head.weight", vocab, width)
        tensors["lm_head.weight"] = w.tensors["lm_head.weight"]
    return config, tensors


def gpt2_logits(config, tensors, ids):
    w = {name.removeprefix("transformer."): tensor.double() for name, tensor in tensors.items()}
    heads, width, act = config["n_head"], config["n_embd"], ACTIVATIONS[config["activation_function"]]

    def norm(x, name):
        return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], config["layer_norm_epsilon"])

    def product(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for i in range(config["n_layer"]):
        q, k, v = product(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(width, -1)
        x = x + product(joined(attend(split(q, heads), split(k, heads), split(v, heads), True)), f"h.{i}.attn.c_proj")
        x = x + product(act(product(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w.get("lm_head.weight", w["wte.weight"]).T


# ---- LLaMA: Touvron et al. 2023 -------------------------------------------------------------------------------------------------


def llama(seed=2, dtype=torch.float32, vocab=256, width=32, heads=4, shared=2, hidden=40, layers=2, epsilon=1e-6, theta=500.0, has_head=True,
          head_dim=None, scaling=None):
    config = {"model_type": "llama", "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": shared,
              "intermediate_size": hidden, "num_hidden_layers": layers, "vocab_size": vocab, "hidden_act": "silu", "rms_norm_eps": epsilon,
              "rope_theta": theta, "rope_scaling": scaling, "attention_bias": False, "tie_word_embeddings": not has_head}
    if head_dim:
        config["head_dim"] = head_dim
    head_dim = head_dim or width // heads
    w = Weights(seed, dtype)
    w.add("model.embed_tokens.weight", vocab, width)
    for i in range(layers):
        at = f"model.layers.{i}"
        w.norm(f"{at}.input_layernorm", width, has_bias=False)
        w.linear(f"{at}.self_attn.q_proj", heads * head_dim, width, has_bias=False)
        w.linear(f"{at}.self_attn.k_proj", shared * head_dim, width, has_bias=False)
        w.linear(f"{at}.self_attn.v_proj", shared * head_dim, width, has_bias=False)
        w.linear(f"{at}.self_attn.o_proj", width, heads * head_dim, has_bias=False)
        w.norm(f"{at}.post_attention_layernorm", width, has_bias=False)
        w.linear(f"{at}.mlp.gate_proj", hidden, width, has_bias=False)
        w.linear(f"{at}.mlp.up_proj", hidden, width, has_bias=False)
        w.linear(f"{at}.mlp.down_proj", width, hidden, has_bias=False)
    w.norm("model.norm", width, has_bias=False)
    if has_head:
        w.add("lm_head.weight", vocab, width)
    return config, w.tensors


def speed(pair, scaling):
    """Of a pair, by LLaMA 3.1's table of waves, or linearly."""
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type"))
    if kind == "linear":
        return pair / scaling["factor"]
    if kind != "llama3":
        return pair
    wave, rows = 2 * math.pi / pair, scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    if wave < rows / high:
        return pair
    if wave > rows / low:
        return pair / scaling["factor"]
    smooth = (rows / wave - low) / (high - low)
    return (1 - smooth) * pair / scaling["factor"] + smooth * pair


def turned(x, theta, scaling):
    """[heads, rows, feature]: pairs f and f + feature / 2."""
    rows, feature = x.shape[-2:]
    half = feature // 2
    speeds = torch.tensor([speed(theta ** (-f * 2 / feature), scaling) for f in range(half)], dtype=x.dtype)
    angle = torch.arange(rows, dtype=x.dtype)[:, None] * speeds
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def llama_logits(config, tensors, ids):
    w = {name: tensor.double() for name, tensor in tensors.items()}
    heads, shared = config["num_attention_heads"], config["num_key_value_heads"]
    turn = (config["rope_theta"], config["rope_scaling"])

    def norm(x, name):
        return x / (x.square().mean(-1, keepdim=True) + config["rms_norm_eps"]).sqrt() * w[f"{name}.weight"]

    x = w["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}"
        h = norm(x, f"{at}.input_layernorm")
        q, k, v = (split(h @ w[f"{at}.self_attn.{name}_proj.weight"].T, n) for name, n in (("q", heads), ("k", shared), ("v", shared)))
        k, v = (y.repeat_interleave(heads // shared, 0) for y in (turned(k, *turn), v))
        x = x + joined(attend(turned(q, *turn), k, v, True)) @ w[f"{at}.self_attn.o_proj.weight"].T
        h = norm(x, f"{at}.post_attention_layernorm")
        up = F.silu(h @ w[f"{at}.mlp.gate_proj.weight"].T) * (h @ w[f"{at}.mlp.up_proj.weight"].T)
        x = x + up @ w[f"{at}.mlp.down_proj.weight"].T
    return norm(x, "model.norm") @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


# ---- BERT: Devlin et al. 2018 ---------------------------------------------------------------------------------------------------


def bert(seed=3, dtype=torch.float32, vocab=50, width=24, heads=4, layers=2, hidden=36, places=16, epsilon=1e-12):
    config = {"model_type": "bert", "hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers, "intermediate_size": hidden,
              "max_position_embeddings": places, "vocab_size": vocab, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": epsilon}
    w = Weights(seed, dtype)
    w.add("embeddings.word_embeddings.weight", vocab, width)
    w.add("embeddings.position_embeddings.weight", places, width)
    w.add("embeddings.token_type_embeddings.weight", 2, width)
    w.norm("embeddings.LayerNorm", width)
    for i in range(layers):
        at = f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            w.linear(f"{at}.attention.self.{name}", width, width)
        w.linear(f"{at}.attention.output.dense", width, width)
        w.norm(f"{at}.attention.output.LayerNorm", width)
        w.linear(f"{at}.intermediate.dense", hidden, width)
        w.linear(f"{at}.output.dense", width, hidden)
        w.norm(f"{at}.output.LayerNorm", width)
    w.linear("pooler.dense", width, width)
    return config, w.tensors


def bert_states(config, tensors, ids, mask):
    """ids, mask [batch, rows]: the last states [batch, rows, width]."""
    w = {name: tensor.double() for name, tensor in tensors.items()}
    heads, width = config["num_attention_heads"], config["hidden_size"]

    def norm(x, name):
        return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], config["layer_norm_eps"])

    def product(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def of_one(ids, mask):
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for i in range(config["num_hidden_layers"]):
            at = f"encoder.layer.{i}"
            q, k, v = (split(product(x, f"{at}.attention.self.{name}"), heads) for name in ("query", "key", "value"))
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            mixed = joined(scores.masked_fill(mask == 0, -math.inf).softmax(-1) @ v)
            x = norm(x + product(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
            h = product(F.gelu(product(x, f"{at}.intermediate.dense")), f"{at}.output.dense")
            x = norm(x + h, f"{at}.output.LayerNorm")
        return x

    return torch.stack([of_one(i, m) for i, m in zip(ids, mask)])

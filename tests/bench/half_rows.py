"""half_rows.py: rows of trainings in bf16: activations and what products read are bf16, variables and their updates f32.

PyTorch is autocast; JAX casts its variables where it reads them. Nobody rounds where another does, so losses differ by what bf16
differs; `char_bf16` compares those of 200 steps. Weft in f32 stands beside them.
"""
import net_rows
import sizes

APART = 2e-2  # of losses
GROUP = "half"
STEPS = {"gpt2_4x64_bf16": 3, "gpt2_1x1024_bf16": 3, "char_bf16": 200, "mlp_bf16": 3, "cnn_bf16": 3, "lstm_lm_bf16": 3,
         "resnet18_bf16": 3}


def contenders(weft, torch, jax):
    half = ("--dtype", "bf16")
    return [weft("Weft", *half), weft("Weft, f32"), torch("PyTorch", "--bf16"),
            torch("PyTorch, compile", "--compile", "--bf16"), jax("JAX", "--bf16")]


def _what(work):
    if work in net_rows.WHAT:
        return net_rows.WHAT[work]
    batch, seq, layers, width, _, vocab = sizes.GPT2[work]
    return f"a step of {layers} layers x {width}, vocabulary {vocab:,}, {batch} x {seq}"


def rows(Row):
    works = {name: name[:-len("_bf16")] for name in STEPS}
    return [Row(name, _what(work) + ", in bf16", GROUP, work=work, steps=STEPS[name], apart=APART)
            for name, work in works.items()]

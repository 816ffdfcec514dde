"""half_rows.py: rows of trainings in bf16: activations and what products read are bf16, variables and their updates f32.

PyTorch is autocast; JAX casts its variables where it reads them. Nobody rounds where another does, so losses differ by what bf16
differs; `char_bf16` compares those of 200 steps. Weft in f32 stands beside them.
"""
import sizes

APART = 2e-2  # of losses
GROUP = "half"
STEPS = {"gpt2_4x64_bf16": 3, "gpt2_1x1024_bf16": 3, "char_bf16": 200}


def contenders(weft, torch, jax):
    half = ("--dtype", "bf16")
    return [weft("Weft", *half), weft("Weft, f32"), torch("PyTorch", "--bf16"),
            torch("PyTorch, compile", "--compile", "--bf16"), jax("JAX", "--bf16")]


def rows(Row):
    found = []
    for name, steps in STEPS.items():
        work = name[:-len("_bf16")]
        batch, seq, layers, width, _, vocab = sizes.GPT2[work]
        found.append(Row(name, f"a step of {layers} layers x {width}, vocabulary {vocab:,}, {batch} x {seq}, in bf16", GROUP,
                         work=work, steps=steps, apart=APART))
    return found

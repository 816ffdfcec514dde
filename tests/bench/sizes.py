"""sizes.py: how large the work of each row is; weft/ops.c, weft/gpt2.c and weft/ranks.c have the same."""

LINEAR = {f"linear_{m}_{k}_{n}": (m, k, n) for m in (256, 1024)
          for k, n in ((768, 768), (768, 2304), (768, 3072), (3072, 768))}
LINEAR_GELU = {f"linear_gelu_{m}": (m, 768, 3072) for m in (256, 1024)}
MATRIX = (1024, 3072)  # softmax, layer_norm, gelu, add
ADAMW = (768, 3072)
EXECUTOR = 500  # products of 2 x 2, and as many softmaxes
ALL_REDUCE = {"all_reduce_4KiB": 4096, "all_reduce_1MiB": 1 << 20, "all_reduce_4MiB": 4 << 20,
              "all_reduce_16MiB": 16 << 20, "all_reduce_64MiB": 64 << 20}  # bytes
GPT2 = {  # batch, seq, layers, width, heads, vocab
    "gpt2_4x64": (4, 64, 12, 768, 12, 50304),
    "gpt2_1x1024": (1, 1024, 12, 768, 12, 50304),
    "gpt2_bytes": (4, 64, 12, 768, 12, 256),
    "char": (12, 64, 4, 128, 4, 65),
}
# Of device.py alone: a GPU's.
DEVICE_GPT2 = {"gpt2_64x1024": (64, 1024, 12, 768, 12, 50304), "gpt2_4x1024": (4, 1024, 12, 768, 12, 50304),
               "gpt2_xl_16x1024": (16, 1024, 48, 1600, 25, 50304), "tiny": (2, 16, 2, 32, 2, 64)}
DEVICE_PRODUCT = (8192, 8192, 8192)
DEVICE_MATRIX = (32768, 3072)

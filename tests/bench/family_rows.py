"""family_rows.py: a few rows of each family of ops: what they are, and their sizes; weft/families.c has the same.

torch_families.py and jax_families.py do them. FAMILIES: name -> (function, sizes, bytes read and written). What a peer has not
is not among its functions.
"""

_THREE = ("first", "middle", "last")


def _along(function, shape, n_written):
    """The function along each of three dims; n_written: elements of the result, by the dim."""
    count = shape[0] * shape[1] * shape[2]
    return {f"{function}_{name}": (function, (*shape, d), 4 * (count + n_written(count, shape[d])))
            for d, name in enumerate(_THREE)}


def _reduced(count, size):
    return count // size


def _kept(count, size):
    return count


def _rows(n_bytes, function, rows, columns, *others):
    """n_bytes: for each element."""
    return function, (rows, columns, *others), n_bytes * rows * columns


_NORMED = (1024, 3072)
_UPDATED = (768, 3072)
_IMAGES = (16, 256, 1024)

FAMILIES = {
    **_along("sum", (128, 64, 512), _reduced),
    **_along("max", (128, 64, 512), _reduced),
    **_along("logsumexp", (128, 64, 512), _reduced),
    **_along("argmax", (128, 64, 512), _reduced),
    **_along("cumsum", (64, 256, 64), _kept),
    **_along("cumprod", (64, 256, 64), _kept),
    **_along("cummax", (64, 256, 64), _kept),
    "cumsum_rows": ("cumsum", (1, 256, 4096, 2), 8 << 20),
    "cumprod_rows": ("cumprod", (1, 256, 4096, 2), 8 << 20),
    "cummax_rows": ("cummax", (1, 256, 4096, 2), 8 << 20),
    "cumsum_columns": ("cumsum", (1, 4096, 256, 1), 8 << 20),
    "cumsum_one": ("cumsum", (1, 1, 1 << 20, 2), 8 << 20),
    "transpose_inner": ("transpose", (16, 512, 256, 0), 16 << 20),
    "transpose_ends": ("transpose", (256, 32, 256, 1), 16 << 20),
    "transpose_outer": ("transpose", (256, 128, 64, 2), 16 << 20),
    "top_8": _rows(4, "top_k", 256, 4096, 8),
    "top_64": _rows(4, "top_k", 256, 4096, 64),
    "top_1000": _rows(4, "top_k", 64, 50304, 1000),
    "sort_rows": _rows(12, "sort", 256, 4096),
    "sort_one": _rows(12, "sort", 1, 1 << 20),
    "sort_short": _rows(12, "sort", 16384, 64),
    "argsort_rows": _rows(8, "argsort", 256, 4096),
    "median_rows": _rows(4, "median", 256, 4096),
    "gather_rows": ("gather", (8192, 768, 4096), 8 * 768 * 4096),
    "pick_some": ("pick", (4096, 1024, 256), 4 * 4096 * (1024 + 2 * 256)),
    "scatter_add": ("scatter_add", (8192, 768, 4096), 4 * 768 * (8192 + 4096)),
    "scatter_max": ("scatter_max", (8192, 768, 4096), 4 * 768 * (8192 + 4096)),
    "segment_mean": ("segment_mean", (1024, 256, 16384), 4 * 256 * (16384 + 1024)),
    "rms_norm": _rows(8, "rms_norm", *_NORMED),
    "group_norm": ("group_norm", (*_IMAGES, 32), 8 * 16 * 256 * 1024),
    "batch_norm": ("batch_norm", _IMAGES, 8 * 16 * 256 * 1024),
    "batch_norm_back": ("batch_norm_back", _IMAGES, 12 * 16 * 256 * 1024),
    "softmax_back": _rows(12, "softmax_back", *_NORMED),
    "layer_norm_back": _rows(12, "layer_norm_back", *_NORMED),
    "rms_norm_back": _rows(12, "rms_norm_back", *_NORMED),
    "cross_entropy": _rows(8, "cross_entropy", 256, 50304),
    "dropout": _rows(8, "dropout", *_NORMED),
    "to_bf16": _rows(6, "to_bf16", *_NORMED),
    "from_bf16": _rows(6, "from_bf16", *_NORMED),
    "to_i32": _rows(8, "to_i32", *_NORMED),
    "gelu_bf16": _rows(4, "gelu_bf16", *_NORMED),
    "softmax_bf16": _rows(4, "softmax_bf16", *_NORMED),
    "sgd": _rows(12, "sgd", *_UPDATED),
    "momentum": _rows(20, "momentum", *_UPDATED),
    "adam": _rows(28, "adam", *_UPDATED),
    "adafactor": _rows(12, "adafactor", *_UPDATED),
    "lion": _rows(20, "lion", *_UPDATED),
}


def shape_of(name):
    return " x ".join(map(str, FAMILIES[name][1]))


def functions(module):
    """The rows of a peer that has `module`'s functions of these names, each of the sizes: name -> what makes its Row."""
    return {name: lambda of=getattr(module, function), n=n: of(*n)
            for name, (function, n, _) in FAMILIES.items() if hasattr(module, function)}

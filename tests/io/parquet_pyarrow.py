"""parquet_pyarrow.py SHOW [N]: N random files that pyarrow writes, read by SHOW (parquet_show.c) as pyarrow reads them itself; then the
same files with bytes changed, of which none may end the process. Exits 77 where pyarrow is not installed."""
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: pyarrow is not installed")
    sys.exit(77)

TYPES = ["i32", "i64", "f16", "f32", "f64", "bool", "text", "fixed", "list_i64", "list_f32"]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def draw(kind, rng, null):
    if null and kind not in ("i32", "i64", "bool", "fixed") and rng.random() < 0.2:
        return None
    few = rng.random() < 0.5
    if kind == "i32":
        return rng.randrange(5) if few else rng.randrange(-(2**31), 2**31)
    if kind == "i64":
        return rng.randrange(5) if few else rng.randrange(-(2**63), 2**63)
    if kind in ("f16", "f32", "f64"):
        return f32(rng.randrange(-100, 100) / 4)
    if kind == "bool":
        return few
    if kind == "text":
        return "".join(rng.choice("abé\n") for _ in range(rng.randrange(9)))
    if kind == "fixed":
        return bytes(rng.randrange(256) for _ in range(3))
    inner = kind[5:]
    return [draw(inner, rng, null) for _ in range(rng.randrange(5))]


ARROW = {"i32": pa.int32(), "i64": pa.int64(), "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(), "bool": pa.bool_(),
         "text": pa.string(), "fixed": pa.binary(3), "list_i64": pa.list_(pa.int64()), "list_f32": pa.list_(pa.float32())}  # fmt: skip
PLAIN = ["PLAIN"]
ENCODINGS = {"i32": [*PLAIN, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "i64": [*PLAIN, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
             "f32": [*PLAIN, "BYTE_STREAM_SPLIT"], "f64": [*PLAIN, "BYTE_STREAM_SPLIT"],
             "text": [*PLAIN, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"], "fixed": [*PLAIN, "DELTA_BYTE_ARRAY"], "bool": [*PLAIN, "RLE"]}  # fmt: skip


def write(path, rng):
    import numpy

    kinds = rng.sample(TYPES, rng.randrange(1, 6))
    n, columns, encodings = rng.choice([1, 7, 100, 2000]), {}, {}
    for kind in kinds:
        null = rng.random() < 0.5
        values = [draw(kind, rng, null) for _ in range(n)]
        if kind == "f16":
            values = [None if v is None else numpy.float16(v) for v in values]
        columns[kind] = pa.array(values, type=ARROW[kind])
        if kind in ENCODINGS:
            encodings[kind] = rng.choice(ENCODINGS[kind])
    apart = rng.random() < 0.5
    pq.write_table(pa.table(columns), path, compression=rng.choice(["none", "snappy", "gzip", "zstd"]),
                   use_dictionary=apart, column_encoding=None if apart else encodings or None,
                   data_page_version=rng.choice(["1.0", "2.0"]), row_group_size=rng.choice([3, 50, 5000]),
                   data_page_size=rng.choice([64, 1000, 1 << 20]))  # fmt: skip


def numbers(value):
    if value is None:
        return []
    if isinstance(value, str):
        return list(value.encode())
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, list):
        return [math.nan if v is None else v for v in value]
    return [value]


def same(a, b):
    return len(a) == len(b) and all((x != x and y != y) or x == y for x, y in zip(a, b))


def check(path, lines):
    table = pq.read_table(path).to_pydict()
    names, wrong = list(table), 0
    rows = len(table[names[0]])
    if len(lines) != rows * len(names):
        print(f"{path}: {len(lines)} lines, not {rows * len(names)}: {lines[:1]}")
        return 1
    for i in range(rows):
        for f, name in enumerate(names):
            word, *found = lines[i * len(names) + f].split(" ")
            value = table[name][i]
            wanted = [math.nan] if value is None and name in ("f16", "f32", "f64") else numbers(value)
            convert = float if "f" in name and name != "fixed" else int
            if word != name or not same([convert(x) for x in found], [convert(x) for x in wanted]):
                print(f"{path}: row {i}: {name}: {found}, not {wanted}")
                wrong += 1
                if wrong > 5:
                    return wrong
    return wrong


def harm(path, k, rng):
    """A copy, cut off or with bytes changed: every other one in its footer."""
    with open(path, "rb") as file:
        good = file.read()
    bad = bytearray(good[: rng.randrange(5, len(good))] if k == 0 else good)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(max(4, len(bad) - 400) if k % 2 else 4, len(bad))
        bad[at] = rng.randrange(256)
    to = f"{path}.{k}"
    with open(to, "wb") as file:
        file.write(bad)
    return to


def main():
    show, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng, wrong, changed = random.Random(7), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(0, n, 20):
            paths = [os.path.join(folder, f"{i}.parquet") for i in range(begin, min(begin + 20, n))]
            for path in paths:
                write(path, rng)
            out = subprocess.run([show, *paths], stdout=subprocess.PIPE, text=True, check=True).stdout
            for path, part in zip(paths, out.split("= ")):
                wrong += check(path, [line for line in part.split("\n") if line and not line.startswith("/")])
            bad = [harm(path, k, rng) for path in paths for k in range(7)]
            run = subprocess.run([show, *bad], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=200)
            changed += len(bad)
            if run.returncode != 0:
                wrong += 1
                print(f"a changed file ended the process: {run.returncode}: {run.stderr.decode()[:2000]}")
            for path in bad:
                os.remove(path)
    print(f"{n} files of pyarrow's, {changed} changed ones: {wrong} wrong")
    return wrong > 0


sys.exit(main())

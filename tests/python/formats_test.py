"""formats_test.py ROOT [N]: N random CSV files that pandas writes and N tar files that webdataset writes, read by weft.data as their own
libraries read them.

LIBWEFT names the library. WEFT_FORMATS_SEED draws other files. Exit status 77: numpy, or both of the libraries, are not here."""
import csv
import importlib
import os
import random
import shutil
import sys
import tempfile
import warnings

from start import np, weft

import weft.data


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pandas, webdataset = library("pandas"), library("webdataset")
if pandas is None and webdataset is None:
    print("skipped: neither pandas nor webdataset is installed")
    sys.exit(77)

N = int(sys.argv[2]) if len(sys.argv) > 2 else 60
SEED = int(os.environ.get("WEFT_FORMATS_SEED", "1"))
folder = tempfile.mkdtemp(prefix="weft-formats-")
warnings.filterwarnings("ignore", message=".*float_precision")  # newer pandas reads exactly by itself
LETTERS = 'abz é,;"\n\t'


def text(rng, letters=LETTERS):
    return "x" + "".join(rng.choice(letters) for _ in range(rng.randrange(12)))


# ---- CSV beside pandas -----------------------------------------------------------------------------------


def column(rng, kind, n):
    if kind == "whole":
        return [rng.randrange(-10 ** rng.randrange(1, 18), 10 ** 18) for _ in range(n)]
    if kind == "real":
        drawn = [rng.gauss(0, 1) * 10.0 ** rng.randrange(-30, 30) for _ in range(n)]
        return [0.5, *drawn[1:]]
    if kind == "gaps":
        return [0.25, *(None if rng.random() < 0.3 else rng.random() for _ in range(n - 1))]
    return [text(rng) for _ in range(n)]


def test_csv_is_read_as_pandas_reads_it():
    for seed in range(SEED, SEED + N):
        rng = random.Random(seed)
        n, path = rng.randrange(1, 40), os.path.join(folder, f"{seed}.csv")
        separator = rng.choice([",", ";", "\t"])
        least = 1 if separator == "," else 2  # one column says nothing of what separates
        kinds = [rng.choice(["whole", "real", "gaps", "text"]) for _ in range(rng.randrange(least, 6))]
        frame = pandas.DataFrame({f"c{i}": column(rng, kind, n) for i, kind in enumerate(kinds)})
        frame.to_csv(path, index=False, sep=separator, lineterminator=rng.choice(["\n", "\r\n"]),
                     quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]))
        theirs = pandas.read_csv(path, sep=separator, float_precision="round_trip")
        ours = weft.data.open(path).read(0, n)
        assert len(theirs) == n and list(ours) == list(theirs.columns), f"seed {seed}: {list(ours)}"
        for i, kind in enumerate(kinds):
            a, b = ours[f"c{i}"], theirs[f"c{i}"]
            if kind == "text":
                assert list(a) == list(b), f"seed {seed}, c{i}: {list(a)} and {list(b)}"
            else:
                assert a.dtype == (np.int64 if kind == "whole" else np.float64), f"seed {seed}, c{i}: {a.dtype}"
                assert np.array_equal(a, b.to_numpy(), equal_nan=kind == "gaps"), f"seed {seed}, c{i}: {a} and {b.to_numpy()}"


# ---- tar beside webdataset -------------------------------------------------------------------------------


def sample(rng, key, shape):
    numbers = np.array([rng.randrange(-99, 99) for _ in range(int(np.prod(shape)))], "f4").reshape(shape)
    return {"__key__": key, "npy": numbers, "cls": rng.randrange(1000), "txt": text(rng), "bin": text(rng).encode()}


def test_tar_is_read_as_webdataset_reads_it():
    for seed in range(SEED, SEED + N):
        rng = random.Random(seed)
        n, path = rng.randrange(1, 12), os.path.join(folder, f"{seed}.tar")
        shape = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(1, 4)))
        endings = rng.sample(["npy", "cls", "txt", "bin"], rng.randrange(1, 5))
        place = rng.choice(["", "a/", "a/b.c/", "x" * 120 + "/"])  # the last is too long for a name of old tar
        with webdataset.TarWriter(path) as writer:
            for i in range(n):
                whole = sample(rng, f"{place}{i:04}", shape)
                writer.write({name: whole[name] for name in ["__key__", *endings]})
        theirs = list(webdataset.WebDataset(path, shardshuffle=False, empty_check=False).decode())
        ours = weft.data.open(path).read(0, n)
        assert len(theirs) == n and sorted(ours) == sorted(endings), f"seed {seed}: {sorted(ours)} and {endings}"
        for i, their in enumerate(theirs):
            for name in endings:
                a, b = ours[name][i], their[name]
                same = np.array_equal(a, b) if name == "npy" else bytes(a) == b if name == "bin" else a == b
                assert same, f"seed {seed}, record {i}, {name}: {a} and {b}"


try:
    for name, test in sorted(globals().copy().items()):
        needs = pandas if "csv" in name else webdataset
        if name.startswith("test_") and needs is not None:
            print(name, flush=True)
            test()
finally:
    shutil.rmtree(folder, ignore_errors=True)

#!/usr/bin/env python3
"""data.py: records a second, beside Grain and webdataset, on the same files; run by hand, with the Python of the peers.

    build-bench/peers/bin/python tests/bench/data.py [--rounds N] [--also NAME=PROGRAM]

It needs grain, webdataset, torch, numpy and Pillow; a peer that is not there is skipped, with the reason. Everybody takes turns, a
process each time, and the best of N rounds counts, as others only ever take away. What was delivered is compared: the mean of all
numbers of a pass is the same for all.
"""
import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

SEQ, BATCH, WINDOWS = 1024, 64, 16384
LINES = 100_000
IMAGES, SIDE, PASSES = 1024, 224, 4
PROGRAM = Path(__file__).resolve().parents[2] / "build/bin/bench/data"


# ---- files ----------------------------------------------------------------------------------------------


def write_tokens(path):
    """llm.c's format: 256 numbers of a head, then tokens of 16 bits."""
    tokens = np.random.default_rng(1).integers(0, 50257, SEQ * WINDOWS + 1, dtype=np.uint16)
    head = np.zeros(256, np.int32)
    head[:3] = 20240520, 1, tokens.size
    path.write_bytes(head.tobytes() + tokens.tobytes())


def write_images(folder):
    """Smooth with some noise, so that they have the size that photos have. Two files, as webdataset gives files to its processes."""
    from PIL import Image
    random = np.random.default_rng(2)
    for part in range(2):
        with tarfile.open(folder / f"images-{part}.tar", "w") as tar:
            for i in range(IMAGES // 2):
                coarse = Image.fromarray(random.integers(0, 256, (14, 14, 3), dtype=np.uint8))
                pixels = np.asarray(coarse.resize((SIDE, SIDE), Image.BICUBIC), np.int16)
                pixels = np.clip(pixels + random.normal(0, 6, pixels.shape), 0, 255).astype(np.uint8)
                packed = io.BytesIO()
                Image.fromarray(pixels).save(packed, "JPEG", quality=85)
                for ending, data in (("cls", str(i % 1000).encode()), ("jpg", packed.getvalue())):
                    member = tarfile.TarInfo(f"{part}{i:06d}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def write_lines(path):
    """340 bytes each on average, most of it text, with one escape."""
    random = np.random.default_rng(3)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz     "))
    with open(path, "w") as file:
        for i, n in enumerate(random.integers(1, 560, LINES)):
            text = "".join(random.choice(letters, n))
            file.write(json.dumps({"id": i, "source": "a file of lines", "text": text[:n // 2] + "\n" + text[n // 2:]}) + "\n")


# ---- peers: each in a process of its own ----------------------------------------------------------------


def timed(batches, size):
    """The first batches, which start threads and processes, are not timed."""
    for _ in range(4):
        next(batches)
    begin, n, total, count = time.perf_counter(), 0, 0.0, 0
    last = begin
    kept = []
    for batch in batches:
        n += size
        last = time.perf_counter()
        kept.append(batch)
        if len(kept) > 2:
            kept.pop(0)
    for numbers in kept[-1]:
        total += float(np.asarray(numbers, np.float64).sum())
        count += np.asarray(numbers).size
    print(json.dumps({"records": n, "seconds": last - begin, "rate": n / (last - begin), "mean": total / count}))


def grain_tokens(path, workers):
    """workers: 0 for processes, two; else threads."""
    import grain
    from absl import flags
    flags.FLAGS.mark_as_parsed()

    class Windows:
        def __init__(self):
            self.tokens = np.memmap(path, np.uint16, "r", 1024)

        def __len__(self):
            return WINDOWS

        def __getitem__(self, i):
            window = np.asarray(self.tokens[i * SEQ:i * SEQ + SEQ + 1], np.int32)
            return {"tokens": window[:-1], "targets": window[1:]}

    data = grain.MapDataset.source(Windows()).shuffle(seed=1).repeat(2).batch(BATCH)
    if workers:
        read = data.to_iter_dataset(grain.ReadOptions(num_threads=workers, prefetch_buffer_size=32))
    else:
        read = data.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    timed(((b["tokens"], b["targets"]) for b in iter(read)), BATCH)


def webdataset_images(path, workers):
    import webdataset
    data = webdataset.WebDataset(path, shardshuffle=False, empty_check=False).repeat(PASSES)
    data = data.decode("rgb8").to_tuple("jpg", "cls").batched(BATCH, partial=False)
    if workers:
        data = webdataset.WebLoader(data, num_workers=workers, batch_size=None)
    timed(iter(data), BATCH)


def json_lines(path, is_shuffled):
    """Python's own: where lines begin is known, as it is to Weft; a line is read and parsed when it is wanted."""
    with open(path, "rb") as file:
        begins = np.cumsum([0, *(len(line) for line in file)])[:-1]
        order = np.random.default_rng(1).permutation(LINES) if is_shuffled else range(LINES)
        begin, total = time.perf_counter(), 0
        for i in order:
            file.seek(begins[i])
            total += len(json.loads(file.readline())["text"])
        seconds = time.perf_counter() - begin
    print(json.dumps({"records": LINES, "seconds": seconds, "rate": LINES / seconds, "sum": total}))


PEERS = {"json_lines": json_lines, "grain_tokens": grain_tokens, "webdataset_images": webdataset_images}


# ---- turns ----------------------------------------------------------------------------------------------


def ask(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return {"why": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}


def compare(title, contenders, rounds):
    """contenders: name -> command. The first is what others are held to."""
    found = {}
    for _ in range(rounds):
        for name, command in contenders.items():
            answer = ask(command)
            if "rate" in answer and answer["rate"] > found.get(name, {}).get("rate", 0):
                found[name] = answer
            found.setdefault(name, answer)
    print(title)
    base = next(iter(found.values()))
    for name, answer in found.items():
        if "rate" not in answer:
            print(f"  {name:28} skipped: {answer['why']}")
            continue
        print(f"  {name:28} {answer['rate']:12,.0f} records/s   1 / {base['rate'] / answer['rate']:.2f}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", choices=("tokens", "images", "lines", "order", "seek"))
    p.add_argument("--also", action="append", default=[], metavar="NAME=PROGRAM", help="another build of `data`")
    p.add_argument("--peer", nargs=3, metavar=("NAME", "FILE", "WORKERS"), help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.peer:
        return PEERS[a.peer[0]](a.peer[1], int(a.peer[2]))
    me = [sys.executable, __file__, "--peer"]
    also = dict(text.split("=", 1) for text in a.also)
    wanted = lambda name: a.only in (None, name)
    with tempfile.TemporaryDirectory(prefix="weft-data-") as folder:
        tokens = Path(folder) / "tokens.bin"
        if wanted("tokens") or wanted("seek"):
            write_tokens(tokens)
        if wanted("tokens"):
            batches = WINDOWS // BATCH
            compare(f"windows of {SEQ} tokens, shuffled, {BATCH} a batch", {
                "Weft": [PROGRAM, "tokens", tokens, SEQ, BATCH, 16 * batches],
                **{n: [q, "tokens", tokens, SEQ, BATCH, 16 * batches] for n, q in also.items()},
                "Grain, 1 thread": [*me, "grain_tokens", tokens, 1],
                "Grain, 16 threads": [*me, "grain_tokens", tokens, 16],
                "Grain, 2 processes": [*me, "grain_tokens", tokens, 0]}, a.rounds)
        if wanted("images"):
            write_images(Path(folder))
            size = sum(file.stat().st_size for file in Path(folder).glob("*.tar")) / IMAGES
            batches = PASSES * IMAGES // BATCH - 4
            weft = lambda q, n: [q, "chain", f"{folder}/images-*.tar", "jpg,cls", BATCH, batches, n]
            for n, title in ((1, "1 thread"), (2, "2 threads, or processes")):
                compare(f"tar of JPEG, {SIDE} x {SIDE}, {size / 1000:.1f} kB each, {BATCH} a batch, {title}", {
                    "Weft": weft(PROGRAM, n), **{name: weft(q, n) for name, q in also.items()},
                    "webdataset": [*me, "webdataset_images", f"{folder}/images-{{0,1}}.tar", n if n > 1 else 0]}, a.rounds)
        if wanted("lines"):
            lines = Path(folder) / "lines.jsonl"
            write_lines(lines)
            for is_shuffled in (0, 1):
                weft = lambda q: [q, "records", lines, "text", LINES, *(["shuffle"] if is_shuffled else [])]
                compare(f"texts of JSON lines, {lines.stat().st_size / LINES:.0f} bytes each, one by one{', shuffled' if is_shuffled else ''}", {
                    "Weft": weft(PROGRAM), **{name: weft(q) for name, q in also.items()},
                    "json of Python": [*me, "json_lines", lines, is_shuffled]}, a.rounds)
        if wanted("order"):
            print("50,000,000 records:", json.dumps(ask([PROGRAM, "order", 50_000_000])))
        if wanted("seek"):
            print("seek:", json.dumps(ask([PROGRAM, "seek", tokens, SEQ, 10000])))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

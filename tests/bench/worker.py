"""worker.py: the end of bench.py's lines that is in Python: protocol.h says what they are.

    worker.serve(about, rows)      rows: name -> function of no arguments that makes a Row, or raises Skipped
"""
import json
import sys
import time

import numpy as np


class Skipped(Exception):
    """Why a row cannot be had here."""


class Row:
    """`call()` is what is timed. It returns the step's loss when `is_training`; else `result()` gives the tensor."""

    def __init__(self, call, result=None, is_training=False, close=None):
        self.call, self.result, self.is_training = call, result, is_training
        self.close = close or (lambda: None)

    def look(self, steps):
        numbers = [self.call() for _ in range(steps)]
        return [float(n) for n in numbers] if self.is_training else sums(self.result())


# ---- numbers: the same bits as protocol.c's ---------------------------------------------------------


def _mix(stream, count):
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1)
    x += np.uint32((stream + 1) * 0x7FEB352D & 0xFFFFFFFF)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return x


def _unit(stream, count):
    return (_mix(stream, count) >> np.uint32(8)) / 8388608.0 - 1.0


def numbers(stream, shape, offset=0.0, scale=1.0):
    """A tensor of float32: offset + scale * (stream's numbers in [-1, 1))."""
    return (offset + scale * _unit(stream, int(np.prod(shape)))).astype(np.float32).reshape(shape)


def indices(stream, shape, n):
    return (_mix(stream, int(np.prod(shape))) % np.uint32(n)).astype(np.int32).reshape(shape)


def sums(tensor):
    x = np.asarray(tensor, dtype=np.float64).reshape(-1)
    return [float(np.sqrt(np.mean(x * x))), float(np.mean(x * _unit(0, x.size)))]


# ---- lines ----------------------------------------------------------------------------------------


def _time(row, blocks, calls):
    wall = []
    for _ in range(blocks):
        begin = time.perf_counter()
        for _ in range(calls):
            row.call()
        wall.append(time.perf_counter() - begin)
    return wall


def _open(rows, name):
    if name not in rows:
        raise Skipped("it has no such row")
    begin = time.perf_counter()
    row = rows[name]()
    return row, {"seconds": time.perf_counter() - begin}


def _answer(state, about, rows, words):
    if words[0] == "about":
        return about
    if words[0] == "open":
        state["row"], answer = _open(rows, words[1])
        return answer
    if words[0] == "look":
        return {"numbers": state["row"].look(int(words[1]))}
    if words[0] == "time":
        return {"wall": _time(state["row"], int(words[1]), int(words[2]))}
    if words[0] == "close":
        state.pop("row").close()
        return {}
    raise ValueError("about, open ROW, look STEPS, time BLOCKS CALLS and close are all there is")


def serve(about, rows, lines=sys.stdin, share=lambda line: line, is_asked=True):
    """share: gives the line that the asked process read to all processes of the job."""
    state = {}
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries say is no answer
    while True:
        line = share(lines.readline() if is_asked else "")
        if not line:
            return
        try:
            answer = _answer(state, about, rows, line.split())
        except Skipped as why:
            answer = {"skipped": str(why)}
        except Exception as error:  # told, so that the other workers can go on
            answer = {"error": f"{type(error).__name__}: {error}"}
        if is_asked:
            print(json.dumps(answer), file=out, flush=True)

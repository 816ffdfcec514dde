#!/usr/bin/env python3
"""serve.py: tokens a second of gpt serve, by how many streams there are; run by hand.

    python3 tests/bench/serve.py [--rounds N] [--tokens N] [--model "--layers 12 --width 768 ..."] [--run DIR] [--serve "--chunk 16 ..."]

A model of that shape is trained for as many steps as it takes to write letters: half a letter would wait for its other half. With
--run it is kept there, and the next time it is there already. One text is timed with one slot, which is how quick a text can be,
and with as many slots as the others have. Then as many texts as there are slots, and again while prompts of many tokens keep
coming in one of these slots. Rounds take turns; the median of them counts. Gaps are those that a client sees between two tokens
of a stream.
"""
import argparse
import json
import multiprocessing
import os
import selectors
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

STEPS = 30
GPT = Path(__file__).resolve().parents[2] / "build/bin/gpt"


class Server:
    def __init__(self, run, *options):
        self.process = subprocess.Popen([GPT, "serve", "--run", run, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().strip().rsplit(":", 1)[1])

    def ask(self, prompt, n, seed):
        """A socket at which the stream will come."""
        body = json.dumps({"prompt": prompt, "max_tokens": n, "seed": seed, "temperature": 0.5, "stream": True,
                           "logprobs": 0})
        s = socket.create_connection(("127.0.0.1", self.port))
        s.sendall(f"POST /v1/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        return s

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def read_all(sockets, again):
    """(when, bytes) of each but the last, which is asked again as often as it ends, until all others have. One thread, which does
    nothing else meanwhile: the server needs the cores."""
    found, live = [[] for _ in sockets], len(sockets) - (again is not None)
    with selectors.DefaultSelector() as wait:
        for i, s in enumerate(sockets):
            wait.register(s, selectors.EVENT_READ, i)
        while live > 0:
            for key, _ in wait.select():
                data = key.fileobj.recv(65536)
                found[key.data].append((time.perf_counter(), data))
                if data:
                    continue
                wait.unregister(key.fileobj)
                key.fileobj.close()
                if again is not None and key.data == len(sockets) - 1:
                    wait.register(again(), selectors.EVENT_READ, key.data)
                else:
                    live -= 1
        for key in list(wait.get_map().values()):
            key.fileobj.close()
    return found


def times_of(pieces):
    """When each token came."""
    times, text = [], b""
    for when, data in pieces:
        text += data
        *events, text = text.split(b"\n\n")
        for event in events:
            json_at = event.find(b"data: {")
            if json_at >= 0:
                times += [when] * len(json.loads(event[json_at + 6:])["choices"][0]["logprobs"]["token_ids"])
    return times


def streams(server, n, tokens, beside=None):
    """Tokens a second of n texts while all go on, and their gaps."""
    again = (lambda: server.ask("x" * beside, 1, 99)) if beside else None
    sockets = [server.ask(chr(97 + i) * (3 + i), tokens, i) for i in range(n)] + ([again()] if again else [])
    found = [times_of(pieces) for pieces in read_all(sockets, again)[:n]]
    begin, end = max(t[0] for t in found), min(t[-1] for t in found)
    count = sum(begin < t <= end for times in found for t in times)
    gaps = [(a, b) for times in found for a, b in zip(times, times[1:]) if b > a]
    joining, going = ([b - a for a, b in gaps if a < begin], [b - a for a, b in gaps if begin <= a and b <= end])
    return {"rate": count / (end - begin), **quantiles([b - a for a, b in gaps]),
            "parts": {"while others join": quantiles(joining), "while all go on": quantiles(going)} if joining and going else {}}


def quantiles(gaps):
    gaps = sorted(gaps)
    return {"median": statistics.median(gaps), "p99": gaps[int(0.99 * (len(gaps) - 1))], "longest": gaps[-1]}


def scans(n, bytes_each):
    """Seconds of each of n walks through memory of its own."""
    memory, taken = bytes(bytes_each), []
    for _ in range(n):
        begun = time.perf_counter()
        memory.count(1)
        taken.append(time.perf_counter() - begun)
    return taken


def bare(n, seconds):
    """The longer one of two such loops at a time, walks of so many seconds."""
    some = 1 << 24
    each = max(some, int(seconds / statistics.median(scans(5, some)) * some))
    with multiprocessing.Pool(2) as pool:
        return quantiles(map(max, *pool.starmap(scans, [(n, each)] * 2)))


def sampled(run, tokens):
    """A token's seconds by gpt sample, without its start."""
    def seconds(n):
        begun = time.perf_counter()
        subprocess.run([GPT, "sample", "--run", run, "--prompt", "aaa", "--sample", str(n)], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begun
    return {"rate": tokens / (seconds(1 + tokens) - seconds(1))}


def gaps_of(rounds):
    median, p99, longest = (1000 * statistics.median(r[k] for r in rounds) for k in ("median", "p99", "longest"))
    return f"   gaps: median {median:6.1f} ms, p99 {p99:6.1f} ms, {p99 / median:.2f} of it; longest {longest:6.1f} ms"


def tell(name, rounds):
    rate = statistics.median(r["rate"] for r in rounds)
    print(f"{name:42} {rate:8.1f} tokens/s" + (gaps_of(rounds) if "p99" in rounds[0] else ""), flush=True)
    for part in rounds[0].get("parts", {}):
        print(f"{'    ' + part:60}" + gaps_of([r["parts"][part] for r in rounds if part in r["parts"]]), flush=True)
    return rate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--tokens", type=int, default=100)
    p.add_argument("--slots", type=int, default=8)
    p.add_argument("--prompt", type=int, default=100, help="tokens of those that keep coming")
    p.add_argument("--model", default="--layers 12 --width 768 --heads 12 --seq 256")
    p.add_argument("--run", default="", help="where the model is, or will be kept")
    p.add_argument("--serve", default="")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-serve-bench-") as work:
        run = a.run or os.path.join(work, "model")
        if not os.path.exists(run):
            subprocess.run([GPT, "train", *a.model.split(), "--batch", "2", "--steps", str(STEPS), "--run", run, "--quiet"], check=True)
        several = Server(run, "--slots", str(a.slots), *a.serve.split())
        one = Server(run, "--slots", "1", *a.serve.split())
        measured = {name: [] for name in ("gpt sample", "one slot, one text", f"{a.slots} slots, one text",
                                          f"{a.slots} slots, {a.slots} texts", f"{a.slots} slots, {a.slots - 1} texts beside prompts")}
        for _ in range(a.rounds):
            for rounds, row in zip(measured.values(), (
                    sampled(run, a.tokens), streams(one, 1, a.tokens), streams(several, 1, a.tokens),
                    streams(several, a.slots, a.tokens), streams(several, a.slots - 1, a.tokens, a.prompt))):
                rounds.append(row)
        rates = [tell(*row) for row in measured.items()]
        step = statistics.median(r["median"] for r in measured[f"{a.slots} slots, {a.slots} texts"])
        print(f"{'two bare loops':60}" + gaps_of([bare(a.tokens, step) for _ in range(a.rounds)]))
        print(f"{a.slots} texts: {rates[3] / max(rates[:3]):.2f} times the quickest single one")
        several.end()
        one.end()


if __name__ == "__main__":
    main()

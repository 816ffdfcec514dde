#!/usr/bin/env python3
"""serve_load.py BIN [MPIEXEC] [SECONDS] [--minutes M] [--pause S]: gpt serve under load, for minutes or an hour: as many good
clients as there are slots and more, beside slow and hostile ones.

Each good request is one of a few whose text is known: so an answer that is lost, cut or another is seen. What the server holds
in memory is told each minute with --minutes, and is at the end no more than it was after the first fifth. With --pause a client
rests for about S seconds between two requests: a load beside which others can work. If those stop the server or this test for
seconds (SIGSTOP), clients are late, and the server leaves them. A good request that was lost then is asked again, and counted.
"""
import argparse
import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time



def arguments():
    found = argparse.ArgumentParser(description=__doc__.split(":")[1])
    found.add_argument("bin")
    found.add_argument("rest", nargs="*", help="what every test is given; the last may be seconds")
    found.add_argument("--minutes", type=float)
    found.add_argument("--pause", type=float, default=0.0, help="seconds, about, between two requests of a client")
    return found.parse_args()


ASKED_FOR = arguments()
BIN = os.path.abspath(ASKED_FOR.bin)
GIVEN = ASKED_FOR.rest[-1] if ASKED_FOR.rest else ""
SECONDS = 60 * ASKED_FOR.minutes if ASKED_FOR.minutes else float(GIVEN) if GIVEN.replace(".", "").isdigit() else 300.0
GOOD, SLOW, HOSTILE = 12, 4, 4
MOST_GROWTH = 4 << 20  # bytes: the allocator's, between two looks
STILL, LATELY = 2.0, 15.0  # seconds: that nothing ran, and how long that excuses a lost request
MODEL = "--layers 2 --width 24 --heads 4 --batch 6 --seq 48 --steps 60 --quiet"
ASKED = [{"prompt": "the quick brown fox"[:n], "seed": n, "max_tokens": 2 * n + 5, "stream": n % 2 == 1} for n in range(1, 15)]
PATH = "/v1/completions"


def serve():
    process = subprocess.Popen([f"{BIN}/gpt", "serve", "--run", "model", "--port", "0", "--client-time", "5s"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stdout.readline().decode()
    if not line:
        said = process.communicate()[1].decode("utf-8", "replace")
        print("skipped: " + said.strip() if "libmicrohttpd" in said else said)
        sys.exit(77 if "libmicrohttpd" in said else 1)
    return process, int(line.strip().rsplit(":", 1)[1])


def text_of(fields, data):
    if not fields["stream"]:
        return json.loads(data)["choices"][0]["text"]
    events = data.decode().split("\n\n")
    if events[-2:] != ["data: [DONE]", ""]:
        raise ValueError(f"a stream ends with {events[-2:]}")
    return "".join(json.loads(e[6:])["choices"][0]["text"] for e in events[:-2])


def ask(connection, fields):
    connection.request("POST", PATH, json.dumps(fields))
    answer = connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        raise ValueError(f"{answer.status}: {data[:200]}")
    return text_of(fields, data)


class Load:
    def __init__(self, port):
        self.port, self.until = port, 0.0
        self.wanted, self.wrong, self.counts = {}, [], {"good": 0, "slow": 0, "hostile": 0, "again": 0}
        self.stalled = -LATELY  # when the server or this process was last seen to stand still
        self.lock = threading.Lock()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def goes_on(self):
        return time.monotonic() < self.until and not self.wrong

    def count(self, kind):
        with self.lock:
            self.counts[kind] += 1

    def has_stalled(self):
        time.sleep(1)  # whoever looks for it has been stopped as well
        return time.monotonic() - self.stalled < LATELY

    def rest(self, draw):
        """Where there is a pause."""
        if ASKED_FOR.pause > 0:
            time.sleep(draw.uniform(0, 2 * ASKED_FOR.pause))

    def good(self, number):
        """One connection, kept, or a new one each time."""
        draw = random.Random(number)
        kept = self.connect()
        while self.goes_on():
            connection = kept if number % 2 else self.connect()
            i = draw.randrange(len(ASKED))
            try:
                text = ask(connection, ASKED[i])
            except (OSError, ValueError, http.client.HTTPException) as why:
                if not self.has_stalled():
                    self.wrong.append(f"{ASKED[i]}: lost: {why!r}")
                    return
                self.count("again")
                connection.close()
                continue
            if text != self.wanted[i]:
                self.wrong.append(f"{ASKED[i]}: {text!r}, not {self.wanted[i]!r}")
            if connection is not kept:
                connection.close()
            self.count("good")
            self.rest(draw)

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def slow(self, number):
        """It reads a few bytes at a time, or never comes to the end of its request."""
        draw = random.Random(1000 + number)
        body = json.dumps(dict(ASKED[number], stream=True)).encode()
        request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        while self.goes_on():
            try:
                with self.raw() as s:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                    for at in range(0, len(request), 7):
                        s.sendall(request[at:at + 7])
                        time.sleep(0.001)
                    if draw.random() < 0.5:
                        while s.recv(16):
                            time.sleep(0.002)
            except OSError:
                pass  # it was too slow
            self.count("slow")
            self.rest(draw)

    def hostile(self, number):
        draw = random.Random(2000 + number)
        good = json.dumps(dict(ASKED[number], stream=True)).encode()
        while self.goes_on():
            body = bytearray(good if draw.random() < 0.7 else draw.randbytes(draw.randrange(2000)))
            for _ in range(draw.randrange(3)):
                body += b" "
                body[draw.randrange(len(body))] = draw.randrange(256)
            said = len(body) if draw.random() < 0.7 else draw.randrange(10 ** draw.randrange(1, 12))
            request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {said}\r\n\r\n".encode() + bytes(body)
            if draw.random() < 0.2:
                request = draw.randbytes(draw.randrange(3000))
            try:
                with self.raw() as s:
                    s.sendall(request[:draw.randrange(len(request) + 1)] if draw.random() < 0.5 else request)
                    if draw.random() < 0.5:
                        s.settimeout(0.02)
                        s.recv(draw.randrange(1, 4000))
                    if draw.random() < 0.5:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass  # the server hung up
            self.count("hostile")
            self.rest(draw)


def held(pid):
    """Bytes of the server's own memory."""
    with open(f"/proc/{pid}/statm") as file:
        fields = file.read().split()
    return (int(fields[1]) - int(fields[2])) * resource.getpagesize()


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] in "Tt"


def watch(load, threads, pid, begun):
    """What it holds after the first fifth, once all threads have ended. With --minutes each minute has a line."""
    early, minute, last = None, 0, time.monotonic()
    while any(t.is_alive() for t in threads):
        time.sleep(0.1)
        now = time.monotonic()
        if now - last > STILL or is_stopped(pid):
            load.stalled = now
        last, passed = now, now - begun
        if early is None and passed >= SECONDS / 5:
            early = held(pid)
        if ASKED_FOR.minutes and passed >= 60 * (minute + 1):
            minute = int(passed / 60)
            print(f"{minute:3} min: {load.counts['good']} texts, {load.counts['slow']} slow, {load.counts['hostile']} hostile, "
                  f"{load.counts['again']} again; {held(pid) / 2 ** 20:.2f} MiB", flush=True)
    return early or held(pid)


def main():
    with open("text.txt", "w") as file:
        file.write("the quick brown fox jumps over the lazy dog; " * 200)
    subprocess.run([f"{BIN}/gpt", "train", *MODEL.split(), "--data", "text.txt", "--run", "model"], check=True)
    process, port = serve()
    load = Load(port)
    load.wanted = {i: ask(load.connect(), fields) for i, fields in enumerate(ASKED)}
    begun = time.monotonic()
    load.until = begun + SECONDS
    threads = [threading.Thread(target=kind, args=(i,)) for kind, n in ((load.good, GOOD), (load.slow, SLOW), (load.hostile, HOSTILE))
               for i in range(n)]
    for t in threads:
        t.start()
    early = watch(load, threads, process.pid, begun)
    for t in threads:
        t.join()
    late = held(process.pid)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=600)[1].decode("utf-8", "replace")
    print(f"{time.monotonic() - begun:.0f} s: {load.counts['good']} texts, {load.counts['slow']} slow and {load.counts['hostile']} "
          f"hostile clients, {load.counts['again']} asked again; {early / 2 ** 20:.1f} MiB held, then {late / 2 ** 20:.1f} MiB; status {process.returncode}")
    for wrong in load.wrong[:5]:
        print("FAIL: " + wrong)
    if late > early + MOST_GROWTH:
        print("FAIL: the server's memory grows")
    if process.returncode != 0:
        print("FAIL: " + said)
    return bool(load.wrong) or late > early + MOST_GROWTH or process.returncode != 0


work = tempfile.mkdtemp(prefix="weft-serve-load-")
try:
    os.chdir(work)
    is_wrong = main()
finally:
    os.chdir("/")
    shutil.rmtree(work)
sys.exit(is_wrong)

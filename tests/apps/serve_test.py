#!/usr/bin/env python3
"""serve_test.py BIN [MPIEXEC]: gpt serve, as its clients see it.

Texts are those of gpt sample, by the same seed, on any mesh. Neighbours, streams and the order in which requests come change no
bit of them. Whatever a client sends, it gets JSON with a sentence, and the next one gets its text.
"""
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import serve_client
from serve_client import PATIENCE, check, fail

BIN, MPIEXEC = (sys.argv[1:] + [""])[:2]
BIN = os.path.abspath(BIN)
TEXT = "the quick brown fox jumps over the lazy dog; "
MODEL = "--layers 2 --width 24 --heads 4 --batch 6 --seq 48 --steps 120 --rate 1e-2 --dropout 0 --dtype f64 --quiet"


def run(*words, status=0, program="gpt"):
    done = subprocess.run([f"{BIN}/{program}", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    said = done.stderr.decode("utf-8", "replace")
    check(done.returncode == status, f"{program} {words} ends with {done.returncode}, not {status}: {said}")
    return done.stdout if status == 0 else said


# ---- a server and its clients ----------------------------------------------------------------------------


class Server(serve_client.Server):
    def __init__(self, *options, launcher=(), model="model"):
        super().__init__([f"{BIN}/gpt", "serve", "--run", model, "--port", "0", *options], launcher)

    def text(self, **fields):
        """The one choice, and how the text was made."""
        status, data = self.ask("/v1/completions", fields)
        check(status == 200, f"{fields}: {status}: {data[:300]}")
        return json.loads(data)["choices"][0]

    def parts(self, **fields):
        status, data = self.ask("/v1/completions", dict(fields, stream=True))
        check(status == 200, f"{fields}: {status}: {data[:300]}")
        events = data.decode().split("\n\n")
        check(events[-2:] == ["data: [DONE]", ""], f"a stream ends with {events[-2:]}")
        return [json.loads(e[len("data: "):])["choices"][0] for e in events[:-2]]


def serving(*options, **more):
    return serve_client.serving(Server(*options, **more))


# ---- texts ------------------------------------------------------------------------------------------------

ASKED = [("the quick", 1, 0.8, 30), ("", 2, 0.8, 40), ("fox", 3, 0, 20), ("jumps over the lazy dog; the quick brown", 4, 1.5, 9),
         ("x", 5, 3.0, 47), ("the", 1, 0.8, 1), ("lazy dog; ", 7, 0.5, 25), ("o", 8, 1.0, 48), ("brown fox jumps", 9, 0.8, 33)]


def shown(tokens):
    """As gpt sample prints bytes, of which some would confuse a terminal."""
    return bytes(b if b >= 32 and b != 127 or b in (9, 10) else ord("?") for b in tokens)


def sampled():
    """What gpt sample writes behind the prompts."""
    texts = []
    for prompt, seed, temperature, n in ASKED:
        out = run("sample", "--run", "model", "--prompt", prompt, "--seed", str(seed), "--temperature", str(temperature),
                  "--sample", str(n))
        check(out.startswith(prompt.encode()) and out.endswith(b"\n"), f"gpt sample prints {out}")
        texts.append(out[len(prompt.encode()):-1])
    return texts


def is_same(choices, wanted):
    """Token by token: letters of an answer stand for bytes only where these are some."""
    return shown(token for choice in choices for token in choice["logprobs"]["token_ids"]) == wanted


def fields_of(i):
    prompt, seed, temperature, n = ASKED[i]
    return {"prompt": prompt, "seed": seed, "temperature": temperature, "max_tokens": n, "logprobs": 2}


def check_texts(server, wanted, kept):
    """All at once, more than there are slots; and every bit is what it was elsewhere on that mesh, alone."""
    with ThreadPoolExecutor(len(ASKED)) as pool:
        found = list(pool.map(lambda i: server.text(**fields_of(i)), range(len(ASKED))))
    for i, choice in enumerate(found):
        check(is_same([choice], wanted[i]), f"{fields_of(i)}: {choice['text']!r}, and gpt sample writes {wanted[i]!r}")
        check(choice["finish_reason"] == "length", f"it ends for {choice['finish_reason']}")
        check(choice == kept.setdefault(i, choice), f"{fields_of(i)}: other bits beside others")


def check_alone(server):
    return {i: server.text(**fields_of(i)) for i in range(len(ASKED))}


def test_texts_are_those_of_sample_and_no_neighbour_changes_a_bit(wanted):
    split = "heads:model,hidden:model,vocab:model"
    ways = [([], []), (["--mesh", "data:2", "--layout", "batch:data"], []),
            (["--mesh", "model:2", "--layout", split, "--slots", "3", "--chunk", "5"], [])]
    if MPIEXEC:
        ways.append((["--mesh", "model:2", "--layout", split], [MPIEXEC, "-n", "2", "--oversubscribe"]))
    for options, launcher in ways:
        with serving(*options, launcher=launcher) as server:
            kept = check_alone(server)
            check_texts(server, wanted, kept)
            check_texts(server, wanted, kept)


def test_streams_and_stops(server):
    for i in range(len(ASKED)):
        whole = server.text(**fields_of(i))
        parts = server.parts(**fields_of(i))
        check("".join(p["text"] for p in parts) == whole["text"], f"{fields_of(i)}: a stream says something else")
        check([p["finish_reason"] for p in parts] == [None] * (len(parts) - 1) + ["length"], "a stream's reasons")
    text = server.text(**fields_of(2))["text"]
    for stop in (text[3:6], text[0], text[-1], [text[5:9], text[2:5]], "never there"):
        first = min((text.find(s) for s in ([stop] if isinstance(stop, str) else stop) if s in text), default=len(text))
        wanted = (text[:first], "stop" if first < len(text) else "length")
        found = server.text(stop=stop, **fields_of(2))
        check((found["text"], found["finish_reason"]) == wanted, f"stop {stop!r} of {text!r} gives {found}")
        parts = server.parts(stop=stop, **fields_of(2))
        check(("".join(p["text"] for p in parts), parts[-1]["finish_reason"]) == wanted, f"stop {stop!r} of a stream: {parts}")


def test_likely_tokens(server):
    choice = server.text(prompt="the ", max_tokens=5, temperature=0, logprobs=3)
    logs = choice["logprobs"]
    check(len(logs["tokens"]) == 5 and "".join(logs["tokens"]) == choice["text"], f"tokens {logs['tokens']}")
    for token, log, likely in zip(logs["tokens"], logs["token_logprobs"], logs["top_logprobs"]):
        check(log <= 0 and next(iter(likely.items())) == (token, log) and len(likely) == 3, f"{token} {log} {likely}")
    ids = server.text(prompt=[ord(c) for c in "the "], max_tokens=5, temperature=0, logprobs=3)
    check(ids == choice, "tokens' numbers are another prompt than their text")


def vectors(server, texts, **fields):
    status, data = server.ask("/v1/embeddings", {"input": texts, **fields})
    check(status == 200, f"{status}: {data[:300]}")
    return [d["embedding"] for d in json.loads(data)["data"]]


def test_vectors(server, kept):
    texts = ["the quick", "x", TEXT, [116, 104, 101]]
    found = vectors(server, texts)
    check([len(v) for v in found] == [24] * 4, "vectors are as wide as the model")
    check(found == [vectors(server, t)[0] for t in texts], "a text's vector depends on others of its request")
    packed = [list(struct.unpack("<24f", base64.b64decode(v))) for v in vectors(server, texts, encoding_format="base64")]
    apart = max(abs(a - b) for v, w in zip(found, packed) for a, b in zip(v, w))
    check(apart < 1e-7, f"base64 has other numbers, {apart} apart")
    if kept:
        apart = max(abs(a - b) for v, w in zip(found, kept) for a, b in zip(v, w))
        check(apart < 1e-6, f"another mesh has other vectors, {apart} apart")
    return found


# ---- hostile clients ---------------------------------------------------------------------------------------

C, E = "/v1/completions", "/v1/embeddings"
WRONG = [
    (404, "GET", "/", None, "there is no / here"),
    (404, "POST", "/v1/completion", b"{}", "did you mean /v1/completions?"),
    (404, "GET", "/../../etc/passwd", None, "there is no"),
    (404, "GET", "/%00" + "a" * 3000, None, "there is no"),
    (405, "GET", C, None, "takes POST, not GET"),
    (405, "DELETE", "/health", None, "takes GET, not DELETE"),
    (405, "PUT", E, b"{}", "takes POST, not PUT"),
    (400, "POST", C, b"", "the body is no JSON"),
    (400, "POST", C, b"{\"prompt\": \"x\"", "the body is no JSON"),
    (400, "POST", C, b"\xff\xfe\x00", "the body is no JSON"),
    (400, "POST", C, b"{\"prompt\": \"\xc3\"}", "the body is no JSON"),
    (400, "POST", C, b"{\"prompt\": \"\\ud800\"}", "the body is no JSON"),
    (400, "POST", C, b"{\"prompt\": \"x\", \"prompt\": \"y\"}", "duplicate"),
    (400, "POST", C, b"[" * 100000, "the body is no JSON"),
    (400, "POST", C, b"[1]", "the body is no object of JSON"),
    (400, "POST", C, b"{}", "there is no prompt"),
    (400, "POST", C, {"promt": "x"}, "did you mean prompt?"),
    (400, "POST", C, {"prompt": 7}, "prompt is a whole number; it has to be a text"),
    (400, "POST", C, {"prompt": ["a", "b"]}, "send a request for each text"),
    (400, "POST", C, {"prompt": [1, "b"]}, "prompt is a text; it has to be"),
    (400, "POST", C, {"prompt": [1, 256]}, "has the token 256; those of the model are 0 to 255"),
    (400, "POST", C, {"prompt": "x" * 49}, "bytes; the model has a window of 48"),
    (400, "POST", C, {"prompt": [1] * 49}, "window of 48"),
    (400, "POST", C, {"prompt": "x" * 20, "max_tokens": 30}, "there is room for 29"),
    (400, "POST", C, {"prompt": "x", "max_tokens": 0}, "max_tokens is 0; it is from 1 to 48"),
    (400, "POST", C, {"prompt": "x", "max_tokens": 1.5}, "max_tokens is a number; it has to be a whole number"),
    (400, "POST", C, b"{\"prompt\": \"x\", \"max_tokens\": 1e99}", "max_tokens is a number"),
    (400, "POST", C, b"{\"prompt\": \"x\", \"seed\": 99999999999999999999}", "the body is no JSON"),
    (400, "POST", C, {"prompt": "x", "seed": -1}, "seed is -1"),
    (400, "POST", C, {"prompt": "x", "temperature": -1}, "temperature is -1"),
    (400, "POST", C, {"prompt": "x", "stop": ""}, "stops nothing"),
    (400, "POST", C, {"prompt": "x", "stop": ["a"] * 5}, "stop has 5 texts; it may have 4"),
    (400, "POST", C, {"prompt": "x", "stream": 1}, "stream is a whole number; it has to be true or false"),
    (400, "POST", C, {"prompt": "x", "logprobs": 6}, "logprobs is 6; it is from 0 to 5"),
    (400, "POST", C, {"prompt": "x", "top_p": 0.5}, "top_p is served as 1 alone"),
    (400, "POST", C, {"prompt": "x", "n": 2}, "n is served as 1 alone"),
    (400, "POST", C, {"prompt": "x", "input": "y"}, "unknown field"),
    (400, "POST", E, {"input": []}, "input is a list of nothing"),
    (400, "POST", E, {"input": ["x"] * 65}, "input has 65 texts; a request may have 64"),
    (400, "POST", E, {"input": "x", "encoding_format": "hex"}, "it is float or base64"),
    (413, "POST", C, b"x" * 2000001, "the body has more than 1048576 bytes"),
]


def test_whatever_is_wrong_is_a_sentence(server):
    for status, method, path, body, sentence in WRONG:
        found, data = server.ask(path, body, method)
        said = json.loads(data)["error"]
        check(found == status and said["code"] == status, f"{method} {path} {str(body)[:80]}: {found}, not {status}: {said}")
        check(sentence in said["message"], f"{method} {path} {str(body)[:80]}: \"{said['message']}\", without \"{sentence}\"")


def test_bodies_that_never_end(server):
    """Told, or not: the server says so, or hangs up."""
    for head in ("Content-Length: 99999999999", "Transfer-Encoding: chunked"):
        s = server.raw(f"POST {C} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        try:
            for _ in range(400):
                s.sendall(b"ffff\r\n" + b"x" * 65535 + b"\r\n")
            fail(f"{head}: 26 MB are taken")
        except OSError:
            pass
        s.close()


def test_unknown_fields_that_change_nothing_are_taken(server):
    a = server.text(prompt="x", max_tokens=4, temperature=0)
    b = server.text(prompt="x", max_tokens=4, temperature=0, n=1, top_p=1.0, user="me", model="any", echo=False, suffix=None)
    check(a == b, "fields that change nothing change something")


def test_bodies_in_pieces(server):
    body = json.dumps({"prompt": "the", "max_tokens": 3, "temperature": 0}).encode()
    whole = server.text(prompt="the", max_tokens=3, temperature=0)
    s = server.raw(f"POST {C} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    for i in range(len(body)):
        s.sendall(body[i:i + 1])
    data = b"".join(iter(lambda: s.recv(4096), b""))
    check(json.loads(data.split(b"\r\n\r\n", 1)[1])["choices"][0] == whole, f"a body byte by byte: {data}")
    s = server.raw(f"POST {C} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    s.sendall(b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:9], body[9:])) + b"0\r\n\r\n")
    data = b"".join(iter(lambda: s.recv(4096), b""))
    check(b"200 OK" in data and json.dumps(whole["text"])[1:-1].encode() in data, f"a body in chunks: {data}")
    s = server.raw(f"POST {C} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode())
    s.recv(4096)  # whatever it says
    s.close()


def test_clients_that_leave(server):
    """In the headers, in the body, before the answer, in a stream: the next one gets its text, and slots are free again."""
    wanted = server.text(**fields_of(0))
    body = json.dumps(dict(fields_of(7), stream=True)).encode()
    head = f"POST {C} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for cut in (0, 5, len(head) - 1, len(head), len(head) + 3, len(head) + len(body)):
        for reads in (0, 1):
            s = server.raw((head + body)[:cut])
            if reads and cut == len(head) + len(body):
                s.recv(20)
            if cut % 2:  # with a reset, not a farewell
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
    for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"G" * 100000, b"POST / HTTP/9.9\r\n\r\n"):
        s = server.raw()
        try:
            s.sendall(garbage)
            s.shutdown(socket.SHUT_WR)
            s.recv(4096)
        except OSError:
            pass  # it was cut off before all was said
        s.close()
    check(server.text(**fields_of(0)) == wanted, "a text changes when others leave")
    server.wait_for("slots_busy", 0)
    body = json.dumps(fields_of(7)).encode()
    request = f"POST {C} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    for _ in range(2):  # all at once, while the server stands still: most of them are gone before their turn comes
        server.process.send_signal(signal.SIGSTOP)
        gone = [server.raw(request) for _ in range(70)]
        for s in gone:
            s.close()
        server.process.send_signal(signal.SIGCONT)
        server.wait_for("waiting", 0)
    server.wait_for("clients", 1)  # who asks for it
    check(server.text(**fields_of(0)) == wanted, "a text changes when many leave at once")


def test_slow_readers_hold_nobody(server):
    """Each has asked for a stream and reads none of it; others are served meanwhile, and then what was written is there."""
    body = json.dumps(dict(fields_of(1), stream=True)).encode()
    slow = [server.raw(f"POST {C} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            for _ in range(12)]
    check(is_same([server.text(**fields_of(0))], sampled_texts[0]), "a slow reader changes another's text")
    for s in slow:
        data = b"".join(iter(lambda: s.recv(64), b""))
        check(b"data: [DONE]" in data, f"a slow reader's stream: {data[-200:]}")


def test_limits():
    with serving("--slots", "1", "--most-waiting", "1", "--client-time", "1s", "--most-body", "1000") as server:
        streams = []
        for _ in range(40):  # one goes on, one waits; another is refused while they do
            c = server.connect()
            c.request("POST", C, json.dumps(dict(fields_of(7), stream=True)))
            streams.append(c)
        answers = [c.getresponse() for c in streams]
        refused = [a for a in answers if a.status == 503]
        check(len(refused) > 0 and all(a.status in (200, 503) for a in answers), f"{[a.status for a in answers]}")
        check(refused[0].getheader("Retry-After") == "1" and b"ask again later" in refused[0].read(), "a full queue says so")
        check(all(b"[DONE]" in a.read() for a in answers if a.status == 200), "a stream beside refusals ends")
        status, data = server.ask(C, b"x" * 1001)
        check(status == 413 and b"more than 1000 bytes" in data, f"{status}: {data}")
        for begun in (b"", b"POST /v1/comp", f"POST {C} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{".encode()):
            with server.raw(begun) as s:
                while s.recv(4096):  # until the server hangs up
                    pass
        check(server.text(**fields_of(5))["finish_reason"] == "length", "after slow clients")
    with serving("--most-time", "0.001s") as server:
        status, data = server.ask(C, fields_of(1))
        choice = json.loads(data).get("choices", [{}])[0]
        check(status == 503 and b"within 0.001 s" in data or choice.get("finish_reason") == "time", f"{status}: {data}")


def test_the_end(wanted):
    """SIGTERM while texts go on, wait and are on their way: all of them come, nobody new is let in, and the status is 0."""
    server = Server("--slots", "2")
    clients = [server.connect() for _ in ASKED]

    def ask(i):
        clients[i].request("POST", C, json.dumps(dict(fields_of(i), stream=True)))

    ask(0)
    first = clients[0].getresponse()
    first.read(1)
    clients[1].request("GET", "/health")
    check(clients[1].getresponse().read() == b'{"status":"ok"}', "/health")
    kept = server.connect()
    kept.connect()
    with server.held():
        for i in range(1, len(ASKED)):
            ask(i)
        server.process.send_signal(signal.SIGTERM)
    data = b"d" + first.read()
    rest = [c.getresponse() for c in clients[1:]]
    check(all(r.getheader("Connection") == "close" for r in rest), f"{[r.getheaders() for r in rest]}")
    texts = [data] + [r.read() for r in rest]
    server.process.communicate(timeout=PATIENCE)
    check(server.process.returncode == 0, f"it ends with {server.process.returncode}")
    for i, data in enumerate(texts):
        choices = [json.loads(e[6:])["choices"][0] for e in data.decode().split("\n\n") if e.startswith("data: {")]
        check(data.endswith(b"data: [DONE]\n\n") and is_same(choices, wanted[i]), f"{fields_of(i)}, as the server ended: {data}")
    try:
        socket.create_connection((server.host, server.port), timeout=PATIENCE).close()
        fail("a server that has ended still listens")
    except OSError:
        pass


def test_words():
    """A model of words: a text stops where the word for the end comes, which is not told."""
    end = "<|endoftext|>"
    with open("ends.txt", "w") as file:
        file.write(("the quick brown fox jumps over" + end) * 150)
    run("tokens", "train", "text.txt", "words", "--words", "290", program="weft")
    run("tokens", "encode", "ends.txt", "ends.tokens", "--tokens", "words", "--special", program="weft")
    run("train", *MODEL.split(), "--data", "ends.tokens", "--tokens", "words", "--run", "wordy")
    with serving(model="wordy") as server:
        for prompt in ("the quick", end, "fox"):
            out = run("sample", "--run", "wordy", "--prompt", prompt, "--temperature", "0", "--sample", "20").decode()
            wanted, *rest = out[len(prompt):].split(end)
            check(out.startswith(prompt) and rest, f"gpt sample --prompt '{prompt}' comes to no end: {out}")
            choice = server.text(prompt=prompt, temperature=0, max_tokens=20, logprobs=1)
            check((choice["text"], choice["finish_reason"]) == (wanted, "stop"), f"{prompt}: {choice}, not {wanted!r}")
            check("".join(choice["logprobs"]["tokens"]) == wanted, f"{prompt}: tokens {choice['logprobs']['tokens']}")
            parts = server.parts(prompt=prompt, temperature=0, max_tokens=20)
            check("".join(p["text"] for p in parts) == wanted, f"{prompt}: a stream says {parts}")
        status, data = server.ask(C, {"prompt": end + "the", "max_tokens": 1})
        check(status == 200 and json.loads(data)["usage"]["prompt_tokens"] == 2, f"the word for the end is one token: {data}")


def test_wrong_options():
    with serving() as server:
        said = run("serve", "--run", "model", "--port", str(server.port), status=2)
        check("in use" in said and "--port 0" in said, said)
    check("name an address of this host" in run("serve", "--run", "model", "--host", "no.such.host.invalid", status=2), "--host")
    check("name an address of this host" in run("serve", "--run", "model", "--host", "192.0.2.1", status=2), "another's --host")
    check("there is no checkpoint" in run("serve", "--run", "nowhere", status=2), "--run")
    said = run("serve", "--run", "model", "--port", "65536", status=2)
    check("port" in said, said)
    run("train", *MODEL.replace("120", "1").split(), "--data", "text.txt", "--run", "places", "--experts", "2")
    check("goes on by a token at a time" in run("serve", "--run", "places", status=2), "experts with places")


# ---- all of it -----------------------------------------------------------------------------------------------

work = tempfile.mkdtemp(prefix="weft-serve-")
try:
    os.chdir(work)
    with open("text.txt", "w") as text_file:
        text_file.write(TEXT * 200)
    run("train", *MODEL.split(), "--data", "text.txt", "--run", "model")
    with serving():
        pass  # or it is skipped
    sampled_texts = sampled()
    test_texts_are_those_of_sample_and_no_neighbour_changes_a_bit(sampled_texts)
    with serving() as one:
        test_streams_and_stops(one)
        test_likely_tokens(one)
        kept_vectors = test_vectors(one, None)
        test_whatever_is_wrong_is_a_sentence(one)
        test_bodies_that_never_end(one)
        test_unknown_fields_that_change_nothing_are_taken(one)
        test_bodies_in_pieces(one)
        test_slow_readers_hold_nobody(one)
    with serving("--client-time", "2s") as hasty:
        test_clients_that_leave(hasty)
    with serving("--mesh", "model:2", "--layout", "heads:model,hidden:model", "--chunk", "7") as other:
        test_vectors(other, kept_vectors)
    test_limits()
    test_the_end(sampled_texts)
    test_words()
    test_wrong_options()
finally:
    os.chdir("/")
    shutil.rmtree(work)
print("passed")

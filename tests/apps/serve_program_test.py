#!/usr/bin/env python3
"""serve_program_test.py WRITER BIN [MPIEXEC]: weft serve, as its clients see it. WRITER --write FOLDER saves programs.

Outputs are those of weft run, on any mesh. Of rows that are apart, requests share steps, and their answers are what they would be
alone. Whatever a client sends, it gets a sentence, and the next one gets its answer.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import serve_client
from serve_client import PATIENCE, check

WRITER, BIN, MPIEXEC = (sys.argv[1:] + [""])[:3]
WRITER, BIN = os.path.abspath(WRITER), os.path.abspath(BIN)
ROWS, WIDE, LONG, WORDS = 4, 6, 5, 11
draw = random.Random(7)


def run(*words, status=0):
    done = subprocess.run([f"{BIN}/weft", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    said = done.stderr.decode("utf-8", "replace")
    check(done.returncode == status, f"weft {words} ends with {done.returncode}, not {status}: {said}")
    return done.stdout if status == 0 else said


def serving(name, *options, launcher=()):
    return serve_client.serving(serve_client.Server([f"{BIN}/weft", "serve", f"{name}.weft", "--port", "0", *options], launcher))


def predict(name):
    return f"/v1/models/{name}:predict"


def asked(server, name, body, what="outputs"):
    status, data = server.ask(predict(name), body)
    check(status == 200, f"{name} {str(body)[:100]}: {status}: {data[:300]}")
    found = json.loads(data)
    check(list(found) == [what], f"{name}: {list(found)}")
    return found[what]


def rows(n, wide=WIDE):
    return [[round(draw.uniform(-2, 2), 3) for _ in range(wide)] for _ in range(n)]


def ids(n):
    return [[draw.randrange(WORDS) for _ in range(LONG)] for _ in range(n)]


def write_npy(path, numbers, dtype="<f4"):
    flat = [v for row in numbers for v in row]
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(numbers)}, {len(numbers[0])}), }}"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0v\0" + head.ljust(117).encode() + b"\n")
        file.write(struct.pack(f"<{len(flat)}{'i' if dtype == '<i4' else 'f'}", *flat))


def of_run(name, field, numbers, dtype="<f4", output="y"):
    """What weft run computes, flat."""
    write_npy("in.npy", numbers, dtype)
    said = json.loads(run("run", f"{name}.weft", "--mesh", "data:1", "--input", f"{field}=in.npy", "--json"))
    return next(o["numbers"] for o in said["outputs"] if o["name"] == output)


def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, list) else [value]


def is_near(a, b, bound=1e-5):
    return len(a) == len(b) and all(abs(x - y) <= bound * (1 + abs(y)) for x, y in zip(a, b))


# ---- outputs ----------------------------------------------------------------------------------------------

ALONE = ["less_mean", "softmax_down", "summed_up", "by_place", "own_weights", "crossed", "of_all", "neighbours"]
APART = ["mlp", "normed", "sum_of_row", "scaled"]


def test_outputs_are_those_of_weft_run():
    x = rows(ROWS)
    for name in APART + ALONE:
        wanted = of_run(name, "x", x)
        with serving(name) as server:
            found = asked(server, name, {"inputs": {"x": x}})
            check(is_near(flat(found), wanted, 1e-6), f"{name}: {found}, and weft run computes {wanted}")
            check(found == asked(server, name, {"inputs": x, "signature_name": "serving_default"}), "one input needs no name")
            if name in ALONE:
                status, data = server.ask(predict(name), {"inputs": {"x": x[:2]}})
                check(status == 400 and b"x has 2 elements; x is f32[batch:4, feature:6], and along batch there are 4" in data, f"{data}")
                status, data = server.ask(predict(name), {"instances": x})
                check(status == 400 and b"send all of its tensors" in data, f"{data}")


def test_rows_are_what_they_are_alone():
    """However many there are, in either form, beside others or not; on any mesh the same to rounding."""
    all_rows = rows(12)
    ways = [([], []), (["--mesh", "data:2"], []), (["--mesh", "data:2,model:2"], [])]
    if MPIEXEC:
        ways += [(["--mesh", "data:2"], [MPIEXEC, "-n", "2", "--oversubscribe"]),
                 (["--mesh", "model:2"], [MPIEXEC, "-n", "2", "--oversubscribe"])]
    kept = None
    for options, launcher in ways:
        with serving("mlp", *options, launcher=launcher) as server:
            alone = [asked(server, "mlp", {"inputs": {"x": [row]}})[0] for row in all_rows]
            kept = kept or alone
            check(is_near(flat(alone), flat(kept)), f"{options}: other numbers than on one rank")
            for n in range(1, ROWS + 1):
                found = asked(server, "mlp", {"instances": all_rows[:n]}, "predictions")
                check(is_near(flat(found), flat(alone[:n]), 1e-6), f"{n} rows at once are others than one by one")
            with ThreadPoolExecutor(8) as pool:
                sizes = [1 + i % ROWS for i in range(40)]
                many = list(pool.map(lambda n: asked(server, "mlp", {"instances": [{"x": r} for r in all_rows[-n:]]}, "predictions"), sizes))
            for n, found in zip(sizes, many):
                check(is_near(flat(found), flat(alone[-n:]), 1e-6), "rows beside others are others")
            check(server.metric("rows_total") == 12 + 10 + sum(sizes), "rows are counted")
            check(server.metric("steps_total") <= 12 + 4 + 40, "steps are counted")


def test_requests_share_steps():
    """While one step goes on others wait; then they go together."""
    with serving("mlp") as server:
        lock, counts = threading.Lock(), [0]

        def one(row):
            for _ in range(25):
                asked(server, "mlp", {"inputs": {"x": [row]}})
                with lock:
                    counts[0] += 1
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, rows(8)))
        check(counts[0] == 200 and server.metric("rows_total") == 200, "all are answered")
        print(f"200 rows in {server.metric('steps_total'):.0f} steps")


def test_ids_and_what_a_program_requires():
    words = ids(ROWS)
    wanted = of_run("encoder", "ids", words, "<i4", "vectors")
    with serving("encoder") as server:
        check(is_near(flat(asked(server, "encoder", {"inputs": {"ids": words}})), wanted), "vectors of ids")
        wide = len(wanted) // ROWS
        for given, n in ((words, ROWS), (words[:2], 2), (words[0], 1)):
            status, data = server.ask("/v1/embeddings", {"input": given, "model": "any", "encoding_format": "float"})
            found = json.loads(data)["data"]
            check(status == 200 and [d["index"] for d in found] == list(range(n)), f"{status}: {data[:200]}")
            check(is_near(flat([d["embedding"] for d in found]), wanted[:n * wide]), "embeddings are the output")
        for body, sentence in (({"input": "a text"}, "a saved program has no vocabulary"), ({}, "there is no input"),
                               ({"input": [1] * 4}, "input[0] has 4 elements; ids is i32[batch:4, seq:5], and along seq there are 5"),
                               ({"input": [1.5] * 5}, "input[0][0] is 1.5, which is no i32"), ({"inptu": []}, "did you mean input?"),
                               ({"input": words, "encoding_format": "base64"}, 'served as "float" alone')):
            status, data = server.ask("/v1/embeddings", body)
            said = json.loads(data)["error"]
            check(status == 400 and said["code"] == 400 and sentence in said["message"], f"{body}: {status}: {data}")
    for options, launcher in [([], []), (["--mesh", "data:2"], [])] + ([([], [MPIEXEC, "-n", "2"])] if MPIEXEC else []):
        with serving("checked", *options, launcher=launcher) as server:
            for _ in range(3):
                check(is_near(flat(asked(server, "checked", {"inputs": words})), wanted), "vectors of ids that are checked")
                status, data = server.ask(predict("checked"), {"inputs": [[WORDS] * LONG] * ROWS})
                check(status == 400 and b"has 11, and word has 11" in data, f"an id too large: {status}: {data}")


def test_kinds_of_numbers():
    with serving("kinds") as server:
        x, count, half = rows(ROWS), [2 ** 40 + i for i in range(WORDS)], [0.5] * WORDS
        found = asked(server, "kinds", {"inputs": {"x": x, "by": 2, "count": count, "half": half}})
        check(sorted(found) == ["log", "output2", "times", "twice"], f"{sorted(found)}")
        check(found["twice"] == [2 * c for c in count] and found["output2"] == [1.0] * WORDS, f"{found}")
        check(is_near(flat(found["times"]), [2 * v for v in flat(x)], 1e-6), f"{found['times']}")
        negative = asked(server, "kinds", {"inputs": {"x": [[-1] * WIDE] * ROWS, "by": 1.5, "count": count, "half": half}})
        check(negative["log"] is None, "what is no number is null")
        for field, value, sentence in [("by", [1], "by is a list; it has to be a number, of f64"),
                                       ("count", [2 ** 53 + 1] * WORDS, "give an integer that fits, below 2^53"),
                                       ("count", [0.5] * WORDS, "count[0] is 0.5, which is no i64; give an integer that fits"),
                                       ("half", [65536] * WORDS, "half[0] is 65536, which is no f16; it is too large"),
                                       ("half", 1, "half is a number; half is f16[word:11], and along word there is a list")]:
            body = {"inputs": {"x": x, "by": 2, "count": count, "half": half, field: value}}
            status, data = server.ask(predict("kinds"), body)
            check(status == 400 and sentence in json.loads(data)["error"], f"{field}: {status}: {data}")
        status, data = server.ask("/v1/models/kinds/metadata", method="GET")
        types = json.loads(data)["metadata"]["signature_def"]["signature_def"]["serving_default"]
        check({k: v["dtype"] for k, v in types["inputs"].items()} ==
              {"x": "DT_FLOAT", "by": "DT_DOUBLE", "count": "DT_INT64", "half": "DT_HALF"}, f"{types}")
        check(types["inputs"]["x"]["tensor_shape"]["dim"] == [{"size": "4", "name": "batch"}, {"size": "6", "name": "feature"}], f"{types}")
    with serving("kinds", "--input", "by=3", "half=0.25") as server:
        body = {"inputs": {"x": x, "count": count}}
        found = asked(server, "kinds", body)
        check(is_near(flat(found["times"]), [3 * v for v in flat(x)], 1e-6) and found["output2"] == [0.5] * WORDS, "--input")
        status, data = server.ask(predict("kinds"), {"inputs": dict(body["inputs"], by=2)})
        check(status == 400 and b'no input \\"by\\" to fill' in data, f"{data}")


# ---- hostile clients ---------------------------------------------------------------------------------------

P = predict("mlp")
WRONG = [
    (404, "GET", "/", None, "there is no / here; there are /v1/models/mlp:predict, "),
    (404, "POST", "/v1/models/mpl:predict", b"{}", "did you mean /v1/models/mlp:predict?"),
    (405, "GET", P, None, "takes POST, not GET"),
    (405, "POST", "/v1/models/mlp", b"{}", "takes GET, not POST"),
    (400, "POST", P, b"", "the body is no JSON"),
    (400, "POST", P, b"{\"inputs\": NaN}", "the body is no JSON"),
    (400, "POST", P, b"{\"inputs\": [[1e999]]}", "the body is no JSON"),
    (400, "POST", P, b"[" * 100000, "the body is no JSON"),
    (400, "POST", P, b"[[1, 2, 3, 4, 5, 6]]", "the body is no object of JSON"),
    (400, "POST", P, b"{\"inputs\": {}, \"inputs\": {}}", "duplicate"),
    (400, "POST", P, {}, "there are no inputs; the body is {\"inputs\": {..}}, with x f32[batch:4, feature:6]"),
    (400, "POST", P, {"input": {}}, "unknown field \"input\"; did you mean inputs?"),
    (400, "POST", P, {"inputs": {"x": [[1] * 6]}, "instances": [[1] * 6]}, "two forms of the same"),
    (400, "POST", P, {"inputs": {}}, "nothing fills the input x f32[batch:4, feature:6]"),
    (400, "POST", P, {"inputs": {"x": [[1] * 6], "xs": 1}}, "no input \"xs\" to fill; did you mean x?"),
    (400, "POST", P, {"inputs": {"x": None}}, "x is null; x is f32[batch:4, feature:6], and along batch there is a list"),
    (400, "POST", P, {"inputs": {"x": []}}, "x has 0 elements; x is f32[batch:4, feature:6], and along batch there are 1 to 4"),
    (400, "POST", P, {"inputs": {"x": [[1] * 6] * 5}}, "x has 5 elements"),
    (400, "POST", P, {"inputs": {"x": [[1] * 6, [1] * 7]}}, "x[1] has 7 elements; x is f32[batch:4, feature:6], and along feature there are 6"),
    (400, "POST", P, {"inputs": {"x": [[1, 2, "3", 4, 5, 6]]}}, "x[0][2] is a text; it has to be a number, of f32"),
    (400, "POST", P, {"inputs": {"x": [[1, 2, [3], 4, 5, 6]]}}, "x[0][2] is a list; it has to be a number, of f32"),
    (400, "POST", P, {"inputs": {"x": [[1, 2, True, 4, 5, 6]]}}, "x[0][2] is true"),
    (400, "POST", P, {"inputs": {"x": [[1, 2, 3, 4, 5, 1e39]]}}, "x[0][5] is 1e+39, which is no f32; it is too large"),
    (400, "POST", P, {"inputs": 5}, "x is a number; x is f32"),
    (400, "POST", P, {"instances": 5}, "instances is a number; it is a list of 1 to 4 rows"),
    (400, "POST", P, {"instances": []}, "instances is a list of nothing"),
    (400, "POST", P, {"instances": [[1] * 6] * 5}, "instances is a list of more rows; it is a list of 1 to 4 rows"),
    (400, "POST", P, {"instances": [[1] * 6, {"y": [1] * 6}]}, 'no input "y" to fill; it has x f32[batch:4, feature:6]'),
    (400, "POST", P, {"instances": [{"x": [1] * 5}]}, "instances[0].x has 5 elements"),
    (400, "POST", P, {"inputs": {"x": [[1] * 6]}, "signature_name": "train"}, "served as \"serving_default\" alone"),
    (413, "POST", P, b"x" * 2000001, "the body has more than 1048576 bytes"),
]


def test_whatever_is_wrong_is_a_sentence():
    with serving("mlp") as server:
        x = rows(2)
        wanted = asked(server, "mlp", {"inputs": {"x": x}})
        for status, method, path, body, sentence in WRONG:
            found, data = server.ask(path, body, method)
            said = json.loads(data)["error"]
            check(found == status, f"{method} {path} {str(body)[:80]}: {found}, not {status}: {said}")
            check(sentence in said, f"{method} {path} {str(body)[:80]}: \"{said}\", without \"{sentence}\"")
        for _ in range(300):  # whatever comes of a byte more or less
            body = bytearray(json.dumps({"inputs": {"x": x}}).encode())
            for _ in range(1 + draw.randrange(3)):
                body[draw.randrange(len(body))] = draw.randrange(256)
            status, data = server.ask(P, bytes(body))
            check(status in (200, 400), f"{bytes(body)}: {status}: {data}")
            json.loads(data)
        check(asked(server, "mlp", {"inputs": {"x": x}}) == wanted, "after all of that")
        check(server.ask("/v1/embeddings", {"input": [1]})[0] == 404, "a program without ids has no embeddings")
        check(server.ask("/health", method="GET") == (200, b'{"status":"ok"}'), "/health")
        check(b"AVAILABLE" in server.ask("/v1/models/mlp", method="GET")[1], "its status")


def test_limits_and_the_end():
    body = json.dumps({"inputs": {"x": rows(1)}})
    with serving("mlp", "--most-body", "1000", "--client-time", "1s", "--name", "other") as server:
        status, data = server.ask(predict("other"), b"x" * 1001)
        check(status == 413 and b"more than 1000 bytes" in data, f"{status}: {data}")
        with server.raw(b"POST /v1/mo") as s:
            while s.recv(4096):  # until the server hangs up
                pass
        check(server.ask(predict("other"), body)[0] == 200, "--name")
    server = serve_client.Server([f"{BIN}/weft", "serve", "mlp.weft", "--port", "0"])
    clients = [server.connect() for _ in range(20)]
    with server.held():
        for c in clients:
            c.request("POST", predict("mlp"), body)
        server.process.send_signal(signal.SIGTERM)
    answers = [c.getresponse() for c in clients]
    check(all(a.status == 200 for a in answers), f"whoever has asked is answered: {[a.status for a in answers]}")
    check(len({a.read() for a in answers}) == 1, "one question, one answer")
    server.process.communicate(timeout=PATIENCE)
    check(server.process.returncode == 0, f"it ends with {server.process.returncode}")


def test_what_cannot_be_served():
    check("write weft serve FILE" in run("serve", status=2), "no file")
    check("several are named" in run("serve", "mlp.weft", "normed.weft", status=2), "two files")
    check("nowhere.weft" in run("serve", "nowhere.weft", status=2), "no such file")
    check("did you mean" in run("serve", "mlp.weft", "--prot", "0", status=2), "a typo")
    os.mkdir("empty")
    check("is a folder, and no run of gpt" in run("serve", "empty", status=2), "a folder")
    check("--input" in run("serve", "mlp.weft", "--input", "z=1", status=2), "an input that is not there")
    with serving("mlp") as server:
        said = run("serve", "mlp.weft", "--port", str(server.port), status=2)
        check("in use" in said and "--port 0" in said, said)
    said = run("serve", "training.weft", "--port", "0", status=2)
    check("trains" in said and "is_frozen" in said, said)


def test_a_run_is_handed_to_gpt():
    with open("text.txt", "w") as file:
        file.write("the quick brown fox; " * 50)
    done = subprocess.run([f"{BIN}/gpt", "train", "--layers", "1", "--width", "8", "--heads", "2", "--seq", "16", "--batch", "2", "--steps", "2",
                           "--quiet", "--data", "text.txt", "--run", "letters"], timeout=PATIENCE)
    check(done.returncode == 0, "gpt train")
    for words in (["letters", "--port", "0", "--slots", "2"], ["--port", "0", "letters"]):
        with serve_client.serving(serve_client.Server([f"{BIN}/weft", "serve", *words])) as server:
            status, data = server.ask("/v1/completions", {"prompt": "the", "max_tokens": 2})
            check(status == 200 and json.loads(data)["model"] == "letters", f"{status}: {data}")
    check("unknown option" in run("serve", "letters", "--slost", "2", status=2), "gpt's own options")


# ---- all of it -----------------------------------------------------------------------------------------------

work = tempfile.mkdtemp(prefix="weft-serve-program-")
try:
    os.chdir(work)
    check(subprocess.run([WRITER, "--write", "."], stdout=subprocess.DEVNULL, timeout=PATIENCE).returncode == 0, "the writer")
    with serving("mlp"):
        pass  # or it is skipped
    test_outputs_are_those_of_weft_run()
    test_rows_are_what_they_are_alone()
    test_requests_share_steps()
    test_ids_and_what_a_program_requires()
    test_kinds_of_numbers()
    test_whatever_is_wrong_is_a_sentence()
    test_limits_and_the_end()
    test_what_cannot_be_served()
    test_a_run_is_handed_to_gpt()
finally:
    os.chdir("/")
    shutil.rmtree(work)
print("passed")

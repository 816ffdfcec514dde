#!/usr/bin/env python3
"""schemas_test.py BIN SCHEMAS: what programs print by --json, and the JSON files of a run, obey the schemas that are installed.

A command a row; its output is parsed, and checked against its schema by a checker of the few words that our schemas have
(type, enum, properties, required, additionalProperties, items, prefixItems, minItems, maxItems). A word that it does not know
fails, and so does a property that no output of any row has: a schema tells neither less than what is printed nor more.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

BIN, SCHEMAS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

SMALL = "--layers 1 --width 8 --heads 2 --seq 8 --batch 4 --quiet"
SAVED = os.path.abspath(os.path.join(os.path.dirname(__file__), "scores.weft"))
LOSS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../oracle/saved_1.weft"))
MESH = "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model"
TRAIN = "gpt train " + SMALL
WIDE = "--width 64 --seq 16 --batch 8"
PLAN = "gpt train --dry-run --json --width 16 --seq 8 --batch 8 "

# schema, what is run, what is read: "" the output, else a file; LINES: one JSON a line. None: it only prepares.
ROWS = [
    (None, TRAIN + f" --steps 2 --run a --eval-data {os.path.abspath(__file__)}", ""),
    (None, TRAIN + " --steps 4 --run b " + MESH, ""),
    (None, TRAIN + " --steps 2 --run c --experts 2 --mesh data:2 --layout batch:data --link 1GB+50us", ""),
    (None, TRAIN + " --steps 1 --run m --mesh data:2 --layout batch:data --link measured --machine laptop", ""),
    ("run", None, "a/run.json"),
    ("run", None, "m/run.json"),
    ("run", None, "b/run.json"),
    (None, TRAIN + " --steps 1 --run k --keep-plan --mesh data:2 --layout batch:data --machine laptop", ""),
    ("plan", None, "k/plan.json"),
    (None, TRAIN + " --steps 2 --run n --mesh data:2 --machine laptop --advice always", ""),
    ("advice", None, "n/advice.json"),
    ("metrics", None, "a/metrics.jsonl"),
    ("metrics", None, "c/metrics.jsonl"),
    ("plan", PLAN + "--layers 1", ""),
    ("plan", PLAN + "--layers 1 --eval-share 0.1 --eval-every 5", ""),
    ("plan", "seq2seq --dry-run --json --best --machine laptop", ""),
    ("plan", PLAN + "--layers 2 --explain --zero 1 --mesh data:2,model:2 --layout batch:data,hidden:model,embed:model", ""),
    ("plan", PLAN + "--layers 4 --scan-layers --recompute --zero 3 --link 1GB+50us --mesh data:2 --layout batch:data", ""),
    ("plan", PLAN + "--layers 4 --stages 2 --micro 2 --mesh pipe:2 --layout stage:pipe", ""),
    ("plan", PLAN + "--layers 1 --experts 4 --explain --mesh data:2 --layout experts:data,batch:data", ""),
    ("plan", PLAN + "--layers 1 --seq 64 --mesh seq:4 --layout seq:seq", ""),
    ("plan", PLAN + "--layers 4 --stages 2 --micro 2 --mesh pipe:2 --layout stage:pipe --machine h100x8 --slow 1:1.2", ""),
    ("plan", "word2vec --dry-run --json --machine laptop --words 50 --mesh data:2 --layout batch:data --data "
     + os.path.abspath(__file__), ""),
    ("plan", "seq2seq --dry-run --json --machine a100x8 --mesh data:4 --layout batch:data", ""),
    ("search", "gpt search --json --ranks 2 --machine laptop --layers 1 --plans 20 --measure 1 --memory 1.1MB " + WIDE, ""),
    ("search", "seq2seq search --json --ranks 2 --machine laptop --within 30s --plans 4", ""),
    ("info", "weft info --json", ""),
    ("info", "weft info --json --links --mesh data:2,model:3", ""),
    ("doctor", "weft doctor --json", ""),
    ("ckpt-list", "weft ckpt list a --json", ""),
    ("ckpt-show", "weft ckpt show b --json", ""),
    ("ckpt-verify", "weft ckpt verify a --json", ""),
    ("ckpt-diff", "weft ckpt diff a a --json", ""),
    ("ckpt-diff", "weft ckpt diff a b --json", ""),
    (None, PLAN + "--layers 1 --machine laptop --mesh data:2 --layout batch:data > one.json", ""),
    (None, PLAN + "--layers 1 --machine laptop --mesh model:2 --layout hidden:model,heads:model > two.json", ""),
    ("diff", "weft diff one.json two.json --json", ""),
    ("diff", "weft diff a b --json", ""),
    ("ckpt-export", "weft ckpt export a a.safetensors --json", ""),
    ("ckpt-import", "weft ckpt import a.safetensors d --json", ""),
    ("machine", "weft machine show h100x8 --json", ""),
    (None, "weft calibrate --seconds 1 --noisy --out here.json", ""),
    ("machine", None, "here.json"),
    (None, "!truncate", "a/ckpt"),
    ("ckpt-list", "weft ckpt list a --json", ""),
    (None, "mnist draw digits", ""),
    (None, "mnist --data digits --hidden 4 --steps 2 --run e --eval-share 0.1", ""),
    ("metrics", None, "e/metrics.jsonl"),
    (None, "!table", "words.csv"),
    ("data", "weft data words.csv --records 2 --json", ""),
    ("saved-run", f"weft run {SAVED} --input x=0.5 --mesh data:1 --json", ""),
    ("saved-run", f"weft run {LOSS} --input x=0.5 --mesh data:1 --json", ""),
    ("tune", "weft tune --vary rate=1e-3|1e-2 --search grid --json -- mnist --data digits --hidden 4 --steps 2", ""),
    (None, "!start mnist --data digits --hidden 4 --steps 10000000 --run f", "f/metrics.jsonl"),
    ("top", "weft top f --json", ""),
    (None, "!stop", ""),
    ("postmortem", "weft postmortem b --json", ""),
    ("postmortem", "weft postmortem b --json --calls 3", ""),
]

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
         "null": type(None)}
ABOUT = {"$schema", "title", "description"}
KNOWN = ABOUT | {"type", "enum", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
                 "maxItems"}
# What only other jobs and machines have: several hosts, a process that has it worse than another.
ELSEWHERE = ("doctor.differs", "doctor.hosts.checks.process")
seen = set() # id of each property's schema that something had


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def check(value, schema, where):
    """Raise ValueError with the place of the first thing that does not fit."""
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: the checker does not know {sorted(unknown)}")
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_of(value, name) for name in names):
        raise ValueError(f"{where}: {json.dumps(value)[:60]} is not {' or '.join(names)}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{where}: {json.dumps(value)[:60]} is not one of {schema['enum']}")
    if isinstance(value, dict):
        check_object(value, schema, where)
    if isinstance(value, list):
        check_array(value, schema, where)


def check_object(value, schema, where):
    properties, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", []):
        if name not in value:
            raise ValueError(f"{where}: {name} is missing")
    for name, one in value.items():
        if name in properties:
            seen.add(id(properties[name]))
            check(one, properties[name], f"{where}.{name}")
        elif other is False:
            raise ValueError(f"{where}: the schema has no {name}")
        elif isinstance(other, dict):
            check(one, other, f"{where}.{name}")


def check_array(value, schema, where):
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        raise ValueError(f"{where}: {len(value)} items")
    first = schema.get("prefixItems", [])
    for i, one in enumerate(value):
        if i < len(first):
            check(one, first[i], f"{where}[{i}]")
        elif isinstance(schema.get("items"), dict):
            check(one, schema["items"], f"{where}[{i}]")


def properties_of(schema, where):
    """Every property in a schema, with its place."""
    for name, one in schema.get("properties", {}).items():
        yield f"{where}.{name}", one
        yield from properties_of(one, f"{where}.{name}")
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("prefixItems", [])]
    for one in inner:
        if isinstance(one, dict):
            yield from properties_of(one, where)


def check_the_checker():
    """What does not obey is found."""
    schema = {"type": "object", "required": ["a"], "additionalProperties": False, "properties": {
        "a": {"type": "integer"}, "b": {"type": ["string", "null"], "enum": ["x", None]},
        "c": {"type": "array", "items": {"type": "number"}, "minItems": 1}}}
    check({"a": 1, "b": None, "c": [1, 2.5]}, schema, "good")
    for value in ([], {}, {"a": 1.5}, {"a": True}, {"a": 1, "b": "y"}, {"a": 1, "c": []}, {"a": 1, "c": ["1"]},
                  {"a": 1, "d": 1}):
        try:
            check(value, schema, "wrong")
        except ValueError:
            continue
        raise SystemExit(f"FAIL: the checker takes {value}")


def truncate(folder):
    step = sorted(os.listdir(folder))[0]
    for name in os.listdir(f"{folder}/{step}"):
        os.truncate(f"{folder}/{step}/{name}", 1)


running = [] # programs that rows look at


def start(line, reads):
    """Until it has written its first numbers."""
    words = line.split()[1:]
    running.append(subprocess.Popen([f"{BIN}/{words[0]}"] + words[1:], stdout=subprocess.DEVNULL))
    while running[-1].poll() is None and not (os.path.exists(reads) and os.path.getsize(reads) > 0):
        time.sleep(0.05)


def stop():
    for process in running:
        process.kill()
        process.wait()


def outputs(line, reads, is_data):
    """The JSON values of a row; one that only prepares has none."""
    if line and line.startswith("!"):
        if line == "!truncate":
            truncate(reads)
        elif line == "!stop":
            stop()
        elif line == "!table":
            with open(reads, "w", encoding="utf-8") as file:
                file.write("word,length\nmesh,4\nlayout,6\n")
        else:
            start(line, reads)
        return []
    text = ""
    if line:
        line, _, into = line.partition(" > ")
        words = line.split()
        done = subprocess.run([f"{BIN}/{words[0]}"] + words[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1, 2) or (done.returncode and not done.stdout):
            raise ValueError(f"{line}: ends with {done.returncode}: {done.stderr}")
        text = done.stdout if is_data or into else ""
        if into:
            with open(into, "w", encoding="utf-8") as file:
                file.write(text)
    if reads:
        with open(reads, encoding="utf-8") as file:
            text = file.read()
    return [json.loads(one) for one in (text.splitlines() if reads.endswith("jsonl") else [text] if text.strip() else [])]


def main():
    check_the_checker()
    schemas = {}
    for file in sorted(os.listdir(SCHEMAS)):
        with open(f"{SCHEMAS}/{file}", encoding="utf-8") as opened:
            schemas[file.replace(".schema.json", "")] = json.load(opened)
    wrong, n = [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, line, reads in ROWS:
            try:
                for value in outputs(line, reads, name is not None):
                    if name:
                        n += 1
                        check(value, schemas[name], name)
            except ValueError as error:
                wrong.append(f"{line or reads}: {error}")
        stop()
        os.chdir("/")
    for name in set(schemas) - {row[0] for row in ROWS}:
        wrong.append(f"{name}.schema.json: no row is of it")
    for name, schema in schemas.items():
        for where, one in properties_of(schema, name):
            if id(one) not in seen and not (where + ".").startswith(tuple(one + "." for one in ELSEWHERE)):
                wrong.append(f"{where}: no output has it")
            if "description" not in one:
                wrong.append(f"{where}: the schema does not say what it is")
    for line in wrong:
        print("FAIL:", line)
    print(f"{n} outputs, {len(schemas)} schemas")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""report_test.py [--browser] BIN [MPIEXEC]: weft report, on runs and plans, good ones and bad ones.

The HTML is taken apart, and its data are compared with what the JSON files say: the plan, its prediction, the curves. A page is
never larger than 2 MB. With --browser, headless Chromium opens pages: nothing is on its console, each bar is within a pixel
of its time, and boxes of ranks are those that nested blocks make. It is skipped where there is no Chromium.
"""
import fcntl
import html
import html.parser
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

BROWSES = sys.argv[1] == "--browser"
BIN, MPIEXEC = (sys.argv[1 + BROWSES:] + [""])[:2]
BIN = os.path.abspath(BIN)
MOST_BYTES = 2000000
NS = 1e9
SMALL = "--layers 2 --width 36 --heads 4 --seq 16 --batch 10 --machine laptop"
MESH = "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VOID = {"meta", "img", "br", "hr", "input", "link"}


def fail(message):
    raise SystemExit("FAIL: " + message)


def check(holds, message):
    if not holds:
        fail(message)


def run(line, status=0, **more):
    """Its output, stderr with it. The line's first word is a program of ours."""
    words = line.split() if isinstance(line, str) else line
    done = subprocess.run([f"{BIN}/{words[0]}"] + words[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    text = done.stdout.decode("utf-8", "replace")
    check(done.returncode == status, f"{words} ends with {done.returncode}, not {status}: {text[:600]}")
    return text


def plan_of(line, path):
    done = subprocess.run([f"{BIN}/gpt", "train", "--dry-run", "--json"] + line.split(), stdout=subprocess.PIPE, check=True)
    with open(path, "wb") as file:
        file.write(done.stdout)
    return json.loads(done.stdout)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))


# ---- the page, taken apart ------------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    """Elements close in the order in which they opened; nothing comes from elsewhere."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.ids = [], [], set()
        with open(path, "rb") as file:
            text = file.read()
        check(len(text) <= MOST_BYTES, f"{path} has {len(text)} bytes")
        self.bytes = len(text)
        self.feed(text.decode("utf-8"))
        self.close()
        check(not self.open, f"{path}: {self.open} stay open")
        data = [text for attributes, text in self.scripts if attributes.get("id") == "data"]
        check(len(self.scripts) == 2 and len(data) == 1, f"{path} has {len(self.scripts)} scripts, {len(data)} of data")
        self.data = json.loads(data[0])

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        for name, value in attrs:
            check(name not in ("src", "action", "background"), f"<{tag}> loads {value}")
            check(name != "href" or value.startswith("#"), f"<{tag}> leads to {value}")
        check(attributes.get("id") not in self.ids or "id" not in attributes, f"two have the id {attributes.get('id')}")
        self.ids.add(attributes.get("id"))
        if tag == "script":
            self.scripts.append((attributes, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        check(tag in VOID, f"<{tag}/> is no empty element")
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}")
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


def report(source, *more, status=0):
    """The page of a report into out.html."""
    if os.path.exists("out.html"):
        os.remove("out.html")
    said = run(["weft", "report", source, "-o", "out.html", *more], status)
    return Page("out.html") if status == 0 else said


# ---- the data, beside the JSON ----------------------------------------------------------------------

def near(a, b, what, off=1e-8):
    check(abs(a - b) <= off * max(1e-300, abs(a), abs(b)), f"{what}: {a}, not {b}")


def same(a, b, what):
    """Equal, numbers to nine digits; long lists and texts are cut off."""
    if isinstance(b, dict):
        check(set(a) == set(b), f"{what} has {sorted(set(a) ^ set(b))[:5]} more or less")
        for name in b:
            same(a[name], b[name], f"{what}.{name}")
    elif isinstance(b, list):
        check(len(a) == min(len(b), 200), f"{what} has {len(a)} entries of {len(b)}")
        for i, one in enumerate(a):
            same(one, b[i], f"{what}[{i}]")
    elif isinstance(b, float):
        near(a, b, what)
    elif isinstance(b, str) and len(b.encode()) > 400:
        check(a.endswith("...") and b.startswith(a[:-3]) and len(a.encode()) <= 403, f"{what}: {a[:80]}")
    else:
        check(a == b, f"{what}: {a!r}, not {b!r}")


def short(text):
    return text if len(text.encode()) <= 400 else text.encode()[:400].decode("utf-8", "ignore") + "..."


def sums(differences):
    at, out = 0, []
    for one in differences:
        at += one
        out.append(at)
    return out


def expected_kind(plan, step):
    version = lambda ids: plan["versions"][ids[0] - 1] if ids and ids[0] > 0 else {"spec": "", "box": ""}
    before, after = version(step["in"]), version(step["out"] or step["in"])
    names = [one["op"] for one in step["ops"]]
    name = names[0] if names else step["collective"] or step["kernel"] or step["kind"]
    place = step["op"] + (" of " + step["builder"] if step["builder"] else "")
    place += f" at {step['file']}:{step['line']}" if step["file"] else ""
    return [step["phase"], name + (f" and {len(names) - 1} more" if len(names) > 1 else ""), place, before["spec"], after["spec"],
            after["box"], step["reason"], step["queue"]], [step["flops"], step["bytes"], step["times"]]


def check_plan(data, plan):
    """Every step that is shown, and all facts of the plan."""
    texts, steps, predicted = data["texts"], data["steps"], plan.get("prediction")
    lists = ("versions", "step_list", "collectives", "tensors", "decisions", "prediction", "advice")
    same(data["plan"], {name: value for name, value in plan.items() if name not in lists}, "plan")
    check(steps["n"] == len(plan["step_list"]), "the number of steps")
    rows = steps["index"] or range(steps["n"])
    check(len(steps["kind"]) == len(rows), "the steps that are shown")
    for row, kind in zip(rows, steps["kind"]):
        words, numbers = expected_kind(plan, plan["step_list"][row])
        got = data["kinds"][kind]
        check([texts[i] for i in got[:8]] == [short(word) for word in words], f"step {row}: {got}, {words}")
        same(got[8:], [float(number) for number in numbers], f"step {row}")
    if not predicted:
        check("begin" not in steps and "prediction" not in data, "a prediction without one")
        return
    same(data["prediction"], {name: value for name, value in predicted.items() if name != "steps"}, "prediction")
    columns = {"begin": sums(steps["begin"]), "end": sums(steps["end"]), "total": steps["total"], "exposed": steps["exposed"]}
    for i, row in enumerate(rows):
        one = predicted["steps"][row]
        for name, column in columns.items():
            check(abs(column[i] - NS * one[name]) <= 0.51, f"step {row}: {name} is {column[i]} ns, not {NS * one[name]}")
        check(texts[steps["source"][i]] == one["source"], f"step {row}: source")
    check(sums(steps["alive"]) == [predicted["steps"][row]["alive_bytes"] for row in rows], "bytes that are alive")


def check_tensors(data, plan):
    texts, tensors = data["texts"], data["tensors"]
    check(tensors["name"] == [one["name"] for one in plan["tensors"]][:len(tensors["name"])], "names of tensors")
    for one, number in zip(plan["tensors"], tensors["class"]):
        row = tensors["classes"][number]
        check([texts[i] for i in row[:5]] == [one[name] for name in ("kind", "dtype", "spec", "storage", "box")], one["name"])
        near(row[5], one["bytes"], one["name"])


def check_measured(data):
    """Bars of a queue do not overlap, and a rank does one thing at a time, within its run."""
    measured, kinds = data["measured"], data["kinds"]
    texts, steps = data["texts"], data["steps"]
    check(measured["runs"] == 2 and measured["ranks"] and len(steps["measured"]) == len(steps["kind"]), "what was measured")
    for one in measured["ranks"]:
        check(0 < one["compute"] + one["waiting"] <= one["seconds"], f"rank {one['rank']}: {one}")
    for shown in measured["shown"]:
        begins, ends = sums(shown["begin"]), {}
        check(set(shown["row"]) <= set(range(len(steps["kind"]))), "rows of bars")
        for begin, length, row, waits in zip(begins, shown["length"], shown["row"], shown["waits"]):
            lane = "compute" if waits else texts[kinds[steps["kind"][row]][7]]
            check(length >= 0 and begin >= ends.get(lane, -10**18) - 1, f"bars of {lane} overlap at {begin}")
            ends[lane] = begin + length
        if shown["rank"] == 0:
            check(set(shown["row"]) == set(range(len(steps["kind"]))), "a step has no bar")
            check(begins[0] >= 0, "a bar begins before its run")
    check(sum(steps["measured"]) > 0, "no step took any time")


def check_curves(data, lines):
    curves = data["curves"]
    check(curves["per"] == 1 and curves["first"] == [one["step"] for one in lines], "steps of curves")
    for series in curves["series"]:
        for got, one in zip(series["mean"], lines):
            value = one.get(series["name"])
            check((got is None) == (value is None), f"{series['name']} of step {one['step']}")
            if value is not None:
                near(got, value, series["name"], 1e-8)
    check({one["name"] for one in curves["series"]} == {name for line in lines for name in line} - {"step"}, "names of curves")


# ---- runs and plans ---------------------------------------------------------------------------------

def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check_advice(data, wanted):
    """Every entry, in its order; a command is never cut off."""
    check(len(data["advice"]) == len(wanted), f"advice: {data['advice']}")
    for got, one in zip(data["advice"], wanted):
        same(got, {name: short(value) if isinstance(value, str) and name != "command" else value for name, value in one.items()}, "advice")


def train(folder, launcher=()):
    line = f"train --data text.txt --run {folder} --steps 6 --trace 3..4 --keep-plan --quiet --advice always {SMALL} {MESH}".split()
    done = subprocess.run([*launcher, f"{BIN}/gpt", *line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, f"gpt: {done.stdout.decode()}")


def check_run(folder):
    with open(f"{folder}/plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    check(plan["prediction"]["machine"]["name"] == "laptop", "plan.json has no prediction")
    data = report(folder).data
    check_plan(data, plan)
    check_tensors(data, plan)
    check_measured(data)
    with open(f"{folder}/advice.json", encoding="utf-8") as file:
        check_advice(data, json.load(file)["advice"])
    check_curves(data, read_lines(f"{folder}/metrics.jsonl"))
    said = {name: value for name, value, _ in data["run"]["said"]}
    check(said["run"] == folder and said["steps"] == "6" and not data["is_going"] and data["notes"] == [], "facts of the run")
    return data


def test_run():
    """On threads and on processes; without its plan; and by the plan that --dry-run prints."""
    train("threads")
    data = check_run("threads")
    check(len(data["measured"]["shown"]) == 4, "not every rank has bars")
    if MPIEXEC:
        train("processes", (MPIEXEC, "-n", "4", "--oversubscribe"))
        check_run("processes")
    plan = plan_of(f"--data text.txt {SMALL} {MESH}", "p.json")
    os.rename("threads/plan.json", "kept.json")
    alone = report("threads").data
    check("plan" not in alone, "a plan from nowhere")
    check(alone["steps"]["n"] == data["steps"]["n"] and alone["steps"]["measured"] == data["steps"]["measured"], "the trace alone")
    check(sums(alone["steps"]["alive"])[0] >= 0 and "begin" in alone["steps"], "the trace's own prediction")
    check_plan(report("threads", "--plan", "p.json").data, plan)
    settings = json.load(open("threads/run.json", encoding="utf-8"))
    settings["settings"]["metrics"]["value"] = "elsewhere.jsonl"
    os.rename("threads/metrics.jsonl", "elsewhere.jsonl")
    write("threads/run.json", settings)
    check_curves(report("threads").data, read_lines("elsewhere.jsonl"))
    other = plan_of(f"{SMALL} --mesh data:2 --layout batch:data", "other.json")
    left = report("threads", "--plan", "other.json").data
    check("plan" not in left and any("the plan is left out" in note for note in left["notes"]), f"{other['mesh']}: {left['notes']}")


def test_two_meshes():
    """A trace stays in its folder until there is another one. A run that went on elsewhere is not measured by it, and no plan is."""
    base = f"gpt train --data text.txt --run two --quiet {SMALL} --layout batch:data"
    run(f"{base} --steps 4 --trace 3..4 --mesh data:2")
    check("measured" in report("two").data, "its own trace")
    run(f"{base} --steps 5 --mesh data:5")
    data = report("two").data
    check("measured" not in data and any("the trace is of mesh data:2, and the run is on mesh data:5" in note for note in data["notes"]),
          f"{data['notes']}")
    os.remove("two/run.json")
    plan = plan_of(f"--data text.txt {SMALL} --layout batch:data --mesh data:2,model:1", "p.json")
    same_steps = plan_of(f"--data text.txt {SMALL} --layout batch:data --mesh data:2", "q.json")
    check(len(plan["step_list"]) == len(same_steps["step_list"]), "plans with other steps, which would tell them apart")
    data = report("two", "--plan", "p.json").data
    check("measured" not in data and any("the trace is of another plan" in note for note in data["notes"]), f"{data['notes']}")
    check("measured" in report("two", "--plan", "q.json").data, "the plan of the trace")


def test_plan():
    for line in (f"{SMALL} {MESH}", "--layers 1 --width 16 --heads 2 --seq 8 --batch 8",
                 "--layers 4 --scan-layers --width 16 --heads 2 --seq 8 --batch 8 --mesh data:3 --layout batch:data --zero 3 --machine laptop"):
        plan = plan_of(line, "p.json")
        data = report("p.json").data
        check_plan(data, plan)
        check_tensors(data, plan)
        check("measured" not in data and "curves" not in data, "a plan with measurements")
        check(("advice" in data) == ("--machine" in line), "advice that nobody asked for, or none")
        if "advice" in data:
            check_advice(data, plan["advice"])
    with open("p.json", "rb") as file:
        run("weft report - -o out2.html", stdin=file)
    check(Page("out2.html").data["steps"] == data["steps"], "stdin")
    run("weft report p.json")
    check(Page("p.html").data["source"] == "p.json", "beside the plan")


def grown(plan, n, unlike):
    """The plan with its steps again and again, up to n; `unlike`: no two of one kind, and long reasons."""
    steps, predicted = plan["step_list"], plan["prediction"]["steps"]
    whole = dict(plan, step_list=[], prediction=dict(plan["prediction"], steps=[]))
    for i in range(n):
        at, shift = i % len(steps), i // len(steps) * predicted[-1]["end"]
        step = dict(steps[at], reason=f"{i} {steps[at]['reason']:.>200}") if unlike else steps[at]
        one = dict(predicted[at], begin=predicted[at]["begin"] + shift, end=predicted[at]["end"] + shift)
        whole["step_list"].append(step)
        whole["prediction"]["steps"].append(one)
    return dict(whole, steps=n)


def test_size():
    """65,536 ranks; 12,000 steps; and what cannot be kept is left out, the costliest steps last, and said."""
    plan = plan_of("--layers 12 --width 3072 --heads 32 --seq 512 --batch 2048 --machine h100x8 --advice never --mesh data:1024,model:64 --zero 3"
                   " --layout batch:data,hidden:model,heads:model,vocab:model", "p.json")
    check(plan["ranks"] == 65536, "the mesh")
    data = report("p.json").data
    check_plan(data, plan)
    check(data["steps"]["index"] is None and not data["notes"], f"{data['notes']}")
    large = grown(plan, 12000, False)
    write("large.json", large)
    page = report("large.json")
    check(page.data["steps"]["index"] is None, "steps are left out")
    check_plan(page.data, large)
    sizes = [page.bytes]
    large = grown(plan, 16000, True)
    write("large.json", large)
    page = report("large.json")
    check_plan(page.data, large)
    index = page.data["steps"]["index"]
    check(index and 3000 <= len(index) < 12000 and "steps are left out" in page.data["notes"][0], f"{page.data['notes']}")
    total = [one["total"] for one in large["prediction"]["steps"]]
    check(min(total[i] for i in index) >= max(total[i] for i in set(range(len(total))) - set(index)), "costly steps are left out")
    print("bytes of pages:", sizes + [page.bytes], "steps kept of 16,000 that are all unlike:", len(index))


def test_curves():
    """Many lines become few points with the same mean and the same extremes; what is no line is said."""
    os.mkdir("curves")
    lines = [{"step": s, "loss": 5 / s, "ms": (s * 37) % 101} for s in range(1, 12346)]
    lines[40]["loss"] = None
    text = "".join(json.dumps(one) + "\n" for one in lines)
    write("curves/metrics.jsonl", text + '{"step": 12346, "lo')
    curves = report("curves").data["curves"]
    check(1 < curves["per"] and len(curves["first"]) <= 1000 and curves["lines"] == 12345, f"{curves['per']}, {curves['lines']}")
    check(curves["first"][0] == 1 and curves["last"][-1] == 12345, "the ends")
    ms = next(one for one in curves["series"] if one["name"] == "ms")
    counts = [last - first + 1 for first, last in zip(curves["first"], curves["last"])]
    near(sum(mean * n for mean, n in zip(ms["mean"], counts)), sum(one["ms"] for one in lines), "the sum of ms")
    check(min(ms["low"]) == 0 and max(ms["high"]) == 100, "the extremes")
    broken = lines[:20] + lines[10:30]
    write("curves/metrics.jsonl", "".join(json.dumps(one) + "\n" for one in broken).replace('{"step": 3,', '{"step: 3,', 1))
    data = report("curves").data
    check(data["curves"]["first"] == [1, 2] + list(range(4, 31)), f"steps again: {data['curves']['first']}")
    check(any("1 lines" in note for note in data["notes"]) and any("1 time:" in note for note in data["notes"]), f"{data['notes']}")


# ---- texts and mistakes -----------------------------------------------------------------------------

EVIL = "</script><script>alert(1)</script><!--<b onclick=x>&amp;\u2028'\"\\"


def evil_plan():
    plan = plan_of(f"{SMALL} {MESH}".replace("data:2", "data:3"), "p.json") # blocks of 4, 4 and 2
    for one in plan["step_list"]:
        one["reason"] = EVIL
    for one in plan["tensors"]:
        one["name"] += EVIL
    advice = [{"what": EVIL, "of": EVIL, "gain_seconds": 0.5, "gain_share": None, "command": EVIL, "reason": EVIL}, {"what": None}, 3]
    return dict(plan, layout=EVIL, advice=advice)


def test_texts():
    plan = evil_plan()
    folder = "</script>".replace("/", "\\") + "<b>"
    os.mkdir(folder)
    write(f"{folder}/plan.json", plan)
    data = report(folder).data
    check_plan(data, plan)
    check_tensors(data, plan)
    check_advice(dict(data, advice=data["advice"][:1]), plan["advice"][:1])
    check(len(data["advice"]) == 2 and data["advice"][1]["command"] is None, f"{data['advice']}")
    check(data["source"] == folder, "the name")


def refused(arguments, sentence, status=2):
    said = run(["weft", "report", *arguments], status)
    check(sentence in said and said.count("\n") == 1, f"{arguments}: {said}")


def test_mistakes():
    plan = plan_of("--layers 1 --width 8 --heads 2 --seq 8 --batch 4 --machine laptop", "p.json")
    os.makedirs("empty", exist_ok=True)
    os.makedirs("only/ckpt", exist_ok=True)
    refused([], "of what? weft report RUN")
    refused(["nowhere"], "there is no run and no plan nowhere")
    refused(["empty"], "empty is no run: it has neither run.json nor metrics.jsonl")
    refused(["only"], "the run in only has checkpoints alone")
    refused(["p.json", "--plan", "p.json"], "is a plan itself")
    refused(["-", "--plan", "-"], "both the run and its plan")
    refused(["p.json", "--ou", "x"], "--out")
    with open("p.json", encoding="utf-8") as file:
        text = file.read()
    for part in (0, 1, 7, len(text) // 3, len(text) // 2, len(text) - 3):
        write("cut.json", text[:part])
        refused(["cut.json"], "cut.json is no whole JSON: line")
    write("cut.json", "[1, 2]")
    refused(["cut.json"], "is JSON, but no plan")
    write("mine.html", "my own page")
    refused(["p.json", "-o", "mine.html"], "mine.html is there, and is no report")
    refused(["p.json", "-o", "/dev/full"], "it is no file")
    refused(["p.json", "-o", "nowhere/a.html"], "cannot write nowhere/a.html")
    run("weft report p.json -o again.html")
    run("weft report p.json -o again.html")
    check(Page("again.html").data["steps"]["n"] == plan["steps"], "written over")


def test_full_disk():
    """A file may grow to 20 KB, and no further. What was there stays."""
    run("weft report p.json -o full.html")
    before = open("full.html", "rb").read()
    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    said = run("weft report p.json -o full.html", 74, preexec_fn=small_disk, restore_signals=False)
    check("cannot write" in said and "File too large" in said and open("full.html", "rb").read() == before, said)
    check(not os.path.exists("full.html.new"), "a part of a page is left")


def test_going():
    """A run that another job writes."""
    os.makedirs("going", exist_ok=True)
    write("going/metrics.jsonl", '{"step": 1, "loss": 2.5}\n{"step": 2, "lo')
    with open("going/lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        said = run("weft report going")
    page = Page("going/report.html")
    check("going on" in said and page.data["is_going"] and page.data["curves"]["last"] == [1], said)


def mutate(value, draw):
    """Somewhere in it another value stands."""
    wrong = (None, -1, 1e300, "", "x", [], {}, [[]], True, 2**60, "[a:4/nowhere")
    while True:
        if isinstance(value, dict) and value:
            name = draw.choice(sorted(value))
        elif isinstance(value, list) and value:
            name = draw.randrange(len(value))
        else:
            return
        if draw.random() < 0.3 or not isinstance(value[name], (dict, list)):
            value[name] = draw.choice(wrong)
            return
        value = value[name]


def test_mutations():
    """Whatever stands in a plan: a page, or a sentence."""
    with open("p.json", encoding="utf-8") as file:
        text = file.read()
    draw = random.Random(7)
    for _ in range(60):
        plan = json.loads(text)
        for _ in range(draw.randrange(1, 6)):
            mutate(plan, draw)
        write("wrong.json", plan)
        done = subprocess.run([f"{BIN}/weft", "report", "wrong.json", "-o", "out.html"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode in (0, 2), f"{done.returncode}: {done.stdout}")
        if done.returncode == 0:
            Page("out.html")


# ---- in a browser -----------------------------------------------------------------------------------

def cut(interval, index, n):
    begin, end = interval
    block = -(-(end - begin) // n)
    first = min(index * block, end - begin)
    return [begin + first, begin + min(first + block, end - begin)]


def boxes_of(spec, mesh):
    axes = [(name, int(size)) for name, size in (part.split(":") for part in mesh.split(","))]
    n = 1
    for _, size in axes:
        n *= size
    for rank in range(min(n, 64)):
        at, left = {}, rank
        for name, size in reversed(axes):
            at[name], left = left % size, left // size
        box = []
        for size, names in re.findall(r":(\d+)(?:/([^,\]{]+))?", spec[:spec.index("]")]):
            interval = [0, int(size)]
            for name in names.split("+") if names else []:
                interval = cut(interval, at[name], dict(axes)[name])
            box.append(interval)
        yield box


def open_page(browser, path, size="1200,900"):
    """What the page has found out of itself; its console has to be empty."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                               f"--window-size={size}", "--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom",
                               f"file://{os.path.abspath(path)}#check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    console = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "CONSOLE" in line]
    check(not console, f"{path}: {console[:3]}")
    found = re.search(r'<pre id="check" hidden="">(.*?)</pre>', done.stdout.decode("utf-8"), re.S)
    check(found, f"{path}: the page has not checked itself")
    result = json.loads(html.unescape(found.group(1)))
    check(not result["faults"], f"{path}: {result['faults'][:5]}")
    return result


def count_bars(data):
    steps = data["steps"]
    predicted = sum(end > begin for begin, end in zip(sums(steps.get("begin", [])), sums(steps.get("end", []))))
    return predicted + (len(data["measured"]["shown"][0]["row"]) if "measured" in data else 0)


def check_in_browser(browser, data, sizes=("1200,900",)):
    for size in sizes:
        result = open_page(browser, "out.html", size)
        check(result["bars"] == count_bars(data) and result["looked"] > 0, f"{result['bars']} bars, {result['looked']} looked at")
        check(result["rows"] == len(data["steps"]["kind"]), f"{result['rows']} rows")
        check(result["advice"] == len(data.get("advice", [])), f"{result['advice']} rows of advice")
        mesh = data["plan"]["mesh"]
        check(result["some"] and result["boxes"] > 10, "no boxes")
        for one in result["some"]:
            check(one["boxes"] == list(boxes_of(one["spec"], mesh)), f"boxes of {one['spec']} on {mesh}")
    return result


def test_in_browser(browser):
    train("threads")
    data = report("threads").data
    result = check_in_browser(browser, data, ("1200,900", "500,800"))
    sent = sum(one["bytes"] for one in data["plan"]["traffic"]) * data["plan"]["ranks"]
    near(result["matrix"], sent, "bytes of the matrix")
    check(result["charts"] == len(data["curves"]["series"]) + 1, f"{result['charts']} charts")
    wanted = ["summary", "advice", "timeline", "time", "memory", "mesh", "traffic", "curves", "steps"]
    check(result["sections"] == wanted, f"{result['sections']}")
    check(result["advice"] > 0, "a run without advice: it has none to be looked at")
    plan = evil_plan()
    write("evil.json", plan)
    check_in_browser(browser, report("evil.json").data)
    plan_of("--layers 2 --width 3072 --heads 32 --seq 512 --batch 2048 --machine h100x8 --advice never --mesh data:1024,model:64 --zero 3"
            " --layout batch:data,hidden:model,heads:model,vocab:model", "p.json")
    check_in_browser(browser, report("p.json").data, ("500,800",))
    write("threads/metrics.jsonl", '{"step": 1, "loss": 2.5}\n')
    os.makedirs("bare", exist_ok=True)
    shutil.copy("threads/metrics.jsonl", "bare")
    report("bare")
    check(open_page(browser, "out.html")["sections"] == ["summary", "curves"], "a run with curves alone")


def main():
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if BROWSES and not browser:
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write("text.txt", "the quick brown fox jumps over the lazy dog; " * 200)
        if BROWSES:
            test_in_browser(browser)
        else:
            for test in (test_run, test_two_meshes, test_plan, test_size, test_curves, test_texts, test_mistakes, test_full_disk, test_going, test_mutations):
                test()
        os.chdir(here)
    print("weft report: good")


main()

#!/usr/bin/env python3
"""board_check.py DIR STEPS: what --tensorboard wrote, as TensorBoard's own reader has it, beside metrics.jsonl of the run in DIR/run.

Every number of every step is there once, and is that of the metrics; histograms count all numbers; the graph's edges lead from nodes that
are there, and its devices are places; texts are texts. Exit status 77, with the reason, where the package tensorboard is not installed.
"""
import json
import math
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing import plugin_event_accumulator
except ImportError:
    print("skipped: no Python package tensorboard here: pip install tensorboard")
    sys.exit(77)

folder, n_steps = sys.argv[1], int(sys.argv[2])


def fail(text):
    sys.exit(f"board_check: {text}")


lines = {}
with open(f"{folder}/run/metrics.jsonl", encoding="utf-8") as file:
    for line in file:
        lines[json.loads(line)["step"]] = json.loads(line)
board = EventAccumulator(f"{folder}/board", size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
board.Reload()
tags = board.Tags()
names = [name for name in lines[1] if name != "step"]
if sorted(tags["scalars"]) != sorted(names):
    fail(f"scalars {tags['scalars']}, metrics {names}")
for name in names:
    events = board.Scalars(name)
    if [e.step for e in events] != list(range(1, n_steps + 1)):
        fail(f"{name} has steps {[e.step for e in events]}")
    for e in events:
        if name in ("loss", "rate", "grad_norm") and not math.isclose(e.value, lines[e.step][name], rel_tol=1e-6):
            fail(f"{name} of step {e.step} is {e.value}, and {lines[e.step][name]} in metrics.jsonl")
for name in tags["histograms"]:
    for e in board.Histograms(name):
        h = e.histogram_value
        if sum(h.bucket) != h.num or h.bucket_limit[-1] != h.max or sorted(h.bucket_limit) != list(h.bucket_limit):
            fail(f"{name} of step {e.step}: {h}")
if not {"variables", "gradients"} <= {name.split("/")[0] for name in tags["histograms"]}:
    fail(f"histograms {tags['histograms']}")
for name in ("command", "layout", "plan"):
    if name not in tags["tensors"] or not board.Tensors(name)[0].tensor_proto.string_val[0].startswith(b"```\n"):
        fail(f"no text {name}")
graph = board.Graph()
nodes = {node.name for node in graph.node}
if len(nodes) != len(graph.node):
    fail("two nodes have one name")
for node in graph.node:
    missing = [name for name in node.input if name not in nodes]
    if missing or not node.device or "_output_shapes" not in node.attr:
        fail(f"node {node.name}: inputs {missing} are not there, device {node.device!r}")
devices = {node.device for node in graph.node}
if not {"whole", "batch:data"} <= devices:
    fail(f"devices {devices}")
# The viewer takes events as its plugins ask for them.
plugins = plugin_event_accumulator.EventAccumulator(f"{folder}/board")
plugins.Reload()
for plugin in ("scalars", "text", "histograms"):
    if plugin not in plugins.Tags().get("tensors", []) and not plugins.PluginTagToContent(plugin):
        fail(f"plugin {plugin} has nothing")
print(f"{len(names)} scalars of {n_steps} steps, {len(tags['histograms'])} histograms, {len(nodes)} nodes, {len(devices)} places")

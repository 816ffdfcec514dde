"""overlap.py: what overlap_test.sh says of one case, from its plan and its times.

    overlap.py PLAN ZERO RATE DELAY ALONE ALONE WAITS GOES_ON TAKEN*4

Fails where nothing goes on beside what computes, or where ZeRO 3 does not begin to gather half of a layer's weights
while the layer before it is computed. How much it is is printed, of the layer that has least.
"""
import json
import re
import sys

ON_THE_WIRE = 1448 / 1514  # of a full segment, what is not headers


def link_ms(plan, rate):
    """How long the bytes of one direction take, of two ranks: what is gathered or scattered passes by half."""
    sent = sum(m["bytes"] * (1 if m["collective"] == "all_reduce" else 0.5) for m in plan["collectives"])
    return sent * 8e-3 / float(rate.removesuffix("mbit")) / ON_THE_WIRE


def blocks(plan, phase):
    """Of each layer in the order they are computed: (number, gathers of its weights, first and last step that reads one)."""
    steps, found = plan["step_list"], {}
    for made in plan["collectives"]:
        block = re.match(r"block(\d+)\.\w+$", made["value"] or "")
        if made["phase"] != phase or made["collective"] != "all_gather" or not block:
            continue
        weight = steps[made["step"]]["out"]
        reader = next(s for s in range(made["step"] + 1, len(steps)) if set(weight) & set(steps[s]["in"]))
        found.setdefault(int(block[1]), []).append((made["step"], made["bytes"], reader))
    return [(n, gathers, max(g[2] for g in gathers)) for n, gathers in found.items()]


def ahead(plan):
    """Of a layer's weights, the part whose gather begins before the last product of the layer before: the least of all layers."""
    least = 1.0
    for phase in "forward", "backward":
        layers = blocks(plan, phase)
        if len(layers) < 2:
            sys.exit(f"{phase}: {len(layers)} layers are gathered")
        for (_, _, before), (_, gathers, _) in zip(layers, layers[1:]):
            early = sum(count for step, count, _ in gathers if step < before)
            least = min(least, early / sum(count for _, count, _ in gathers))
    return least


def main(path, zero, rate, delay, *numbers):
    with open(path) as file:
        plan = json.load(file)
    alone0, alone1, waits, goes_on, *taken = map(float, numbers)
    alone, link = max(alone0, alone1), link_ms(plan, rate)
    line = f"zero {zero}, {rate}, {delay}: computing {alone:.1f} ms, link {link:.1f} ms; exchanges waited for {waits:.1f} ms, going on "
    line += f"{goes_on:.1f} ms: {goes_on / max(alone, link):.2f} of the longer, {goes_on / (alone + link):.2f} of the sum"
    if taken:
        line += f"; the helper took {sum(taken[2:]) - sum(taken[:2]):.1f} s of a core in both runs"
    print(line, flush=True)
    if not any(q["beside"] for q in plan["queues"]):
        sys.exit("nothing goes on while something is computed")
    if zero == "3":
        print(f"zero 3: gathers of {ahead(plan):.0%} of a layer's weights, or more, begin while the layer before is computed", flush=True)
        if ahead(plan) < 0.5:
            sys.exit("that is too little: the next layer is not gathered ahead")


main(*sys.argv[1:])

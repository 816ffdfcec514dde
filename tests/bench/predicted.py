"""predicted.py: what predict.py found, as a table, as numbers and as a picture.

A cell's predicted time is that of its kernels' fastest figures, and its measured time the fastest that its turns found.

Two layouts of a model are a pair. One takes some times as long as the other. Leaving out any one of the goes in which both had a turn may
change that ratio. Where it is nearer to 1 than it can be changed so, or than TOLD, the machine does not tell the two apart: they are
tied. Predicted times are tied by the same measure. Kendall's tau is tau-b: pairs that are tied on one side alone count against it.
"""
import itertools
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

TOLD, LEAST_GOES = 0.02, 3  # two layouts are told apart by no less, and in no fewer goes


@dataclass
class Row:
    model: str
    layout: str
    start: str
    ranks: int
    turns: list  # of {"go", "seconds", "predicted"}
    general: float | None  # predicted without the cell's own kernels

    @property
    def seconds(self):
        return min(turn["seconds"] for turn in self.turns)

    @property
    def predicted(self):
        """By the last turn, which knows the kernels of all."""
        return self.turns[-1]["predicted"]

    @property
    def ratio(self):
        return self.predicted / self.seconds


# ---- numbers -------------------------------------------------------------------------------------------


def apart(a, b):
    """(log(a / b), how far leaving out a go changes it) of what was measured; None where both were in too few goes."""
    times = [{turn["go"]: turn["seconds"] for turn in row.turns} for row in (a, b)]
    goes = times[0].keys() & times[1].keys()
    if len(goes) < LEAST_GOES:
        return None

    def ratio(left_out):
        return math.log(min(times[0][go] for go in goes - left_out) / min(times[1][go] for go in goes - left_out))

    whole = ratio(set())
    return whole, max(abs(ratio({go}) - whole) for go in goes)


def sign(value, least):
    return 0 if abs(value) <= least else 1 if value > 0 else -1


def pairs_of(rows):
    """(sign measured, sign predicted) of all pairs of layouts of a model that are started alike."""
    found = []
    for a, b in itertools.combinations(rows, 2):
        measured = apart(a, b) if (a.model, a.start) == (b.model, b.start) else None
        if measured:
            least = max(measured[1], TOLD)
            found.append((sign(measured[0], least), sign(math.log(a.predicted / b.predicted), least)))
    return found


def tau_b(pairs):
    told = [sum(1 for pair in pairs if pair[side]) for side in (0, 1)]
    return sum(a * b for a, b in pairs) / math.sqrt(told[0] * told[1]) if all(told) else None


def errors_text(title, ratios):
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    near = sum(error <= 0.1 for error in errors) / len(errors)
    return (f"| {title} | {len(errors)} | {100 * statistics.median(errors):.1f} % | {100 * near:.0f} % | "
            f"{100 * errors[math.ceil(0.9 * len(errors)) - 1]:.0f} % | {100 * errors[-1]:.0f} % |")


def summary(rows):
    groups = [("all", rows)] + [(title, [row for row in rows if holds(row)]) for title, holds in (
        ("no more ranks than the 2 cores", lambda row: not row.start and row.ranks <= 2),
        ("more ranks", lambda row: not row.start and row.ranks > 2),
        ("processes", lambda row: row.start == "MPI"), ("two hosts", lambda row: row.start == "two hosts"))]
    print("| | cells | median error | within 10 % | nine of ten within | worst |")
    print("| --- | --- | --- | --- | --- | --- |")
    for title, some in groups:
        if some:
            print(errors_text(title, [row.ratio for row in some]))
    general = [row.general / row.seconds for row in rows if row.general]
    if general:
        print(errors_text("all, own kernels not known", general))
    pairs = pairs_of(rows)
    told = [pair for pair in pairs if pair[0]]
    if told:
        right = sum(a == b for a, b in told)
        print(f"\nin {LEAST_GOES} or more goes were {len(pairs)} pairs of layouts of a model: {len(told)} of them are told apart by what was measured, and {right} of "
              f"these are predicted in the same order; Kendall's tau-b of all pairs is {tau_b(pairs) or 0:.2f}")


def print_table(rows):
    print("| model | layout | step, ms | predicted, ms | / measured | turns |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        slowest = max(turn["seconds"] for turn in row.turns) / row.seconds
        print(f"| {row.model} | {row.layout} | {1e3 * row.seconds:.2f} | {1e3 * row.predicted:.2f} | {row.ratio:.2f} | "
              f"{len(row.turns)}, to {slowest:.2f} of it |")
    print()
    if rows:
        summary(rows)


# ---- a picture -----------------------------------------------------------------------------------------


def draw(rows, path):
    """Predicted against measured, both logarithmic; the line where they agree, and a tenth to each side."""
    values = [value for row in rows for value in (row.seconds, row.predicted)]
    low, high = math.floor(2 * math.log10(min(values))) / 2, math.ceil(2 * math.log10(max(values))) / 2
    size, edge = 440, 50

    def place(value):
        return edge + (math.log10(value) - low) / (high - low) * (size - 2 * edge)

    def line(factor, style):
        begin, end = 10 ** low, 10 ** high
        return (f'<line x1="{place(begin):.1f}" y1="{size - place(begin * factor):.1f}" x2="{place(end):.1f}" '
                f'y2="{size - place(end * factor):.1f}" {style}/>')

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">',
             f'<rect width="{size}" height="{size}" fill="white"/>', line(1, 'stroke="black"'),
             line(1.1, 'stroke="#bbb" stroke-dasharray="4"'), line(1 / 1.1, 'stroke="#bbb" stroke-dasharray="4"')]
    for tick in range(math.ceil(low), math.floor(high) + 1):
        at = place(10 ** tick)
        label = f"{10 ** (tick + 3):g} ms"
        parts.append(f'<text x="{at:.1f}" y="{size - edge + 18}" text-anchor="middle">{label}</text>')
        parts.append(f'<text x="{edge - 6}" y="{size - at + 4:.1f}" text-anchor="end">{label}</text>')
    for row in rows:
        colour = "#c33" if row.start else "#36c" if row.ranks <= 2 else "#393"
        parts.append(f'<circle cx="{place(row.seconds):.1f}" cy="{size - place(row.predicted):.1f}" r="3" fill="{colour}" fill-opacity="0.7">'
                     f'<title>{row.model}; {row.layout}</title></circle>')
    parts.append(f'<text x="{size / 2}" y="{size - 8}" text-anchor="middle">measured</text>')
    parts.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">predicted</text>')
    parts.append(f'<text x="{edge + 8}" y="{edge}">blue: 1 or 2 ranks; green: more than the 2 cores; red: processes</text></svg>')
    Path(path).write_text("\n".join(parts) + "\n")

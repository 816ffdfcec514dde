"""predicted.py: what predict.py found, as a table, as numbers and as a picture.

A cell's predicted time is that of its kernels' fastest figures. A prediction is of an undisturbed step. So the fastest step of all turns is
its measured time, which a run prints beside its prediction, too. The mean of a turn's fastest quarter, of the turns the fastest, is told
besides: few steps are undisturbed from end to end on a machine that others use.

Two layouts of a model are a pair. One takes some times as long as the other. Leaving out any one of the goes in which both had a turn may
change that ratio. Where it is nearer to 1 than it can be changed so, or than TOLD, the machine does not tell the two apart. Of pairs that
are told apart, Kendall's tau says how many are predicted in the same order. Tau-b counts predictions against it that differ by less.
"""
import itertools
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

TOLD, LEAST_GOES = 0.03, 3  # two layouts are told apart by no less, as search has it, and in no fewer goes


@dataclass
class Row:
    model: str
    layout: str
    start: str
    ranks: int
    turns: list  # of {"go", "fastest", "seconds": the mean of the fastest quarter, "predicted"}
    general: float | None  # predicted without the cell's own kernels

    def least(self, key):
        return min(turn[key] for turn in self.turns)

    @property
    def predicted(self):
        """By the last turn, which knows the kernels of all."""
        return self.turns[-1]["predicted"]

    @property
    def ratio(self):
        return self.predicted / self.least("fastest")


# ---- numbers -------------------------------------------------------------------------------------------


def apart(a, b):
    """(log(a / b), how far leaving out a go changes it) of what was measured; None where both were in too few goes."""
    times = [{turn["go"]: turn["fastest"] for turn in row.turns} for row in (a, b)]
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
    """(sign measured, sign predicted, sign predicted where it is told apart) of all pairs of layouts of a model that are started alike."""
    found = []
    for a, b in itertools.combinations(rows, 2):
        measured = apart(a, b) if (a.model, a.start) == (b.model, b.start) else None
        if measured:
            least, said = max(measured[1], TOLD), math.log(a.predicted / b.predicted)
            found.append((sign(measured[0], least), sign(said, 0), sign(said, least)))
    return found


def tau(pairs):
    told = [pair for pair in pairs if pair[0]]
    return sum(pair[0] * pair[1] for pair in told) / len(told) if told else None


def tau_b(pairs):
    told = [sum(1 for pair in pairs if pair[side]) for side in (0, 2)]
    return sum(pair[0] * pair[2] for pair in pairs) / math.sqrt(told[0] * told[1]) if all(told) else None


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
    print(errors_text("all, by the mean of the fastest quarter", [row.predicted / row.least("seconds") for row in rows]))
    general = [row.general / row.least("fastest") for row in rows if row.general]
    if general:
        print(errors_text("all, own kernels not known", general))
    pairs = pairs_of(rows)
    told = [pair for pair in pairs if pair[0]]
    if told:
        right = sum(pair[0] == pair[1] for pair in told)
        print(f"\nin {LEAST_GOES} or more goes were {len(pairs)} pairs of layouts of a model: {len(told)} of them are told apart by what was measured, and {right} of "
              f"these are predicted in the same order; Kendall's tau of these is {tau(pairs):.2f}, tau-b of all {tau_b(pairs) or 0:.2f}")


def print_table(rows):
    print("| model | layout | fastest step, ms | fastest quarter, ms | predicted, ms | / fastest | turns |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.model} | {row.layout} | {1e3 * row.least('fastest'):.2f} | {1e3 * row.least('seconds'):.2f} | {1e3 * row.predicted:.2f} | "
              f"{row.ratio:.2f} | {len(row.turns)} |")
    print()
    if rows:
        summary(rows)


# ---- a picture -----------------------------------------------------------------------------------------


def draw(rows, path):
    """Predicted against measured, both logarithmic; the line where they agree, and a tenth to each side."""
    values = [value for row in rows for value in (row.least("fastest"), row.predicted)]
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
        took = row.least("fastest")
        colour = "#c33" if row.start else "#36c" if row.ranks <= 2 else "#393"
        parts.append(f'<circle cx="{place(took):.1f}" cy="{size - place(row.predicted):.1f}" r="3" fill="{colour}" fill-opacity="0.7">'
                     f'<title>{row.model}; {row.layout}</title></circle>')
    parts.append(f'<text x="{size / 2}" y="{size - 8}" text-anchor="middle">measured</text>')
    parts.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">predicted</text>')
    parts.append(f'<text x="{edge + 8}" y="{edge}">blue: 1 or 2 ranks; green: more than the 2 cores; red: processes</text></svg>')
    Path(path).write_text("\n".join(parts) + "\n")

"""page.py: what was measured, as text for a terminal and as the tables of docs/performance.md."""
import math

import rows

BEGIN, END = "<!-- figures: made by ./run bench --page FILE -->", "<!-- end of figures -->"


def seconds(s):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if s * factor >= 1:
            return f"{s * factor:.4g} {unit}"
    return f"{s * 1e9:.4g} ns"


def rate(row, s):
    """A minimum in the row's own words: "181 GFLOP/s"."""
    if row.unit == "FLOP":
        return f"{row.amount / s * 1e-9:.1f} GFLOP/s"
    if row.unit == "B" and row.group != "all_reduce":
        return f"{row.amount / s * 1e-9:.1f} GB/s"
    if row.unit == "op":
        return f"{s / row.amount * 1e9:.0f} ns an op"
    return ""


def gigabytes(b):
    return f"{b * 1e-9:.2f} GB" if b >= 1e9 else f"{b * 1e-6:.0f} MB"


def _cells(row, record):
    for name, c in record["contenders"].items():
        if "minimum" not in c:
            yield [name, c.get("skipped") and f"skipped: {c['skipped']}" or "not timed", "", "", "", "", "", ""]
            continue
        stream = max(p["stream"] for p in record["probes"].values())
        share = f"{row.amount / c['minimum'] / stream:.2f}" if row.unit == "B" and row.group == "op" else ""
        yield [name, seconds(c["minimum"]), seconds(c["median"]), seconds(c["cpu"]), f"{c.get('ratio', 0):.2f}",
               rate(row, c["minimum"]), share, gigabytes(c["peak"]) if "peak" in c else ""]


def text(row, record):
    head = ["", "minimum", "median", "CPU", "efficiency" if row.is_efficiency else "ratio", "", "of stream", "memory"]
    table = [head] + list(_cells(row, record))
    is_reason = lambda cell: cell.startswith("skipped")
    widths = [max(len(line[i]) for line in table if not is_reason(line[i])) for i in range(len(head))]
    lines = [f"{row.name}: {row.what}"]
    lines += ["  " + "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths)))
              .rstrip() for line in table]
    if "probes" in record:
        b, a = record["probes"]["before"], record["probes"]["after"]
        lines.append(f"  probes: product {b['product'] * 1e-9:.1f}, {a['product'] * 1e-9:.1f} GFLOP/s; stream "
                     f"{b['stream'] * 1e-9:.1f}, {a['stream'] * 1e-9:.1f} GB/s; load {record['load']:.1f}")
    if not record["is_result"]:
        lines.append(f"  NOT A RESULT: {record['why']}")
    return "\n".join(lines) + "\n"


# ---- all rows in one number ----------------------------------------------------------------------------


def beside_best(row, record):
    """The best peer's minimum over Weft's; None where either is not timed, and of rows that are efficiencies."""
    timed = {name: c["minimum"] for name, c in record["contenders"].items() if "minimum" in c}
    peers = [timed[c.name] for c in rows.contenders(row, {}) if c.program != "bench_weft" and c.name in timed]
    ours = timed.get(row.base("Weft"))
    return min(peers) / ours if peers and ours and not row.is_efficiency else None


def _mean(ratios):
    least = min(ratios, key=ratios.get)
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    below = sum(ratio < 1 for ratio in ratios.values())
    return f"{mean:.2f} of {len(ratios)} rows, {below} of them below 1, the least {ratios[least]:.2f} ({least})"


def geometric_mean(records):
    """A sentence on results, and on all that was timed where that is more."""
    known = {row.name: row for row in rows.ROWS}
    found = {r["name"]: (beside_best(known[r["name"]], r), r["is_result"]) for r in records if r["name"] in known}
    timed = {name: ratio for name, (ratio, _) in found.items() if ratio}
    results = {name: ratio for name, ratio in timed.items() if found[name][1]}
    said = _mean(results) if results else "no row that is a result has a peer"
    return said + (f"; with those that are no results {_mean(timed)}" if len(timed) > len(results) else "")


# ---- docs/performance.md --------------------------------------------------------------------------------

TITLES = {"op": "Single ops", "recurrent": "Recurrent layers", "executor": "The executor", "training": "Training steps",
          "net": "Training steps of small nets", "half": "Training steps in bf16", "all_reduce": "all_reduce",
          "ranks": "Data parallel", "split": "Shared weights", "ring": "Attention over ranks", "start": "From the command to the first loss"}


DULL = ("cores", "threads", "processor")  # what workers say of themselves that is said elsewhere


def _markdown(lines):
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]]) + "\n"


def _group(group, found):
    """One line for every row and contender."""
    has_stream = any(row.unit == "B" and row.group == "op" for row, _ in found)
    has_peak = any("peak" in c for _, r in found for c in r["contenders"].values())
    has_rate = any(rate(row, 1) for row, _ in found)
    head = ["", "", "minimum", "median", "CPU", "efficiency" if found[0][0].is_efficiency else "ratio"]
    head += ["rate"] * has_rate + ["of the stream"] * has_stream + ["peak memory"] * has_peak
    lines = [head]
    for row, record in found:
        for i, cells in enumerate(_cells(row, record)):
            name, minimum, median, cpu, ratio, speed, share, peak = cells
            if minimum.startswith("skipped"):
                minimum = minimum[:100]
            line = [f"`{row.name}`: {row.what}" if i == 0 else "", name, minimum, median, cpu, ratio]
            lines.append(line + [speed] * has_rate + [share] * has_stream + [peak] * has_peak)
    return f"### {TITLES[group]}\n\n" + _markdown(lines)


def _range(values, factor, unit):
    low, high = min(values) * factor, max(values) * factor
    return f"{low:.0f} to {high:.0f} {unit}"


def _conditions(data, found):
    """Under which the figures were taken."""
    m, records = data["machine"], [record for _, record in found]
    about = {}
    for record in records:
        for c in record["contenders"].values():
            about.update({k: str(v) for k, v in c.get("about", {}).items() if k not in DULL})
    probes = [p for record in records for p in record["probes"].values()]
    lines = [["", ""], ["processor", f"{m['processor']}, {m['cores']} cores"],
             ["system", f"{m['system']}, Python {m['python']}"],
             ["versions", ", ".join(f"{k} {v}" for k, v in about.items())],
             ["commit", ", ".join(sorted({record["commit"] for record in records}))],
             ["measured", ", ".join(sorted({record["when"][:10] for record in records}))],
             ["product probe", _range([p["product"] for p in probes], 1e-9, "GFLOP/s")],
             ["stream probe", _range([p["stream"] for p in probes], 1e-9, "GB/s")],
             ["load before a row", _range([record["load"] for record in records], 1, "")],
             ["best peer / Weft, geometric mean", geometric_mean(records)]]
    return _markdown(lines)


def tables(data):
    known = {row.name: row for row in rows.ROWS}
    found = [(known[r["name"]], r) for r in data["rows"] if r["is_result"] and r["name"] in known]
    parts = [_conditions(data, found)]
    for group in TITLES:
        here = [(row, record) for row, record in found if row.group == group]
        if here:
            parts.append(_group(group, here))
    refused = [r["name"] for r in data["rows"] if not r["is_result"]]
    if refused:
        parts.append("No result, as the probes moved or workers disagreed: " + ", ".join(refused) + ".\n")
    return "\n".join(parts)


def write(path, data):
    """Put the tables between the two marks of the page."""
    page = path.read_text()
    before, rest = page.split(BEGIN)
    path.write_text(before + BEGIN + "\n\n" + tables(data) + "\n" + END + rest.split(END)[1])
    return 0

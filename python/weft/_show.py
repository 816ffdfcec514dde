"""_show: how tensors look: a line and numbers; in a notebook their shards as a picture."""
import numpy

_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")


def _escaped(text):
    import html  # of notebooks alone

    return html.escape(text)


def splits_of(session, dims):
    """Axes of the mesh that split each dim, by the layout's rules in order: the first that has an axis takes it."""
    text, axes = str(session.layout), session.mesh.axes
    taken, splits = set(), {}
    for rule in filter(None, text.split(",")):
        name, _, over = rule.partition(":")
        if name not in [dim.name for dim in dims] or "(" in rule:
            continue
        for axis in over.split("+"):
            axis = axis.rstrip("?")
            if axis in axes and axis not in taken:
                taken.add(axis)
                splits.setdefault(name, []).append(axis)
    return splits


def spec_of(session, dims):
    splits = splits_of(session, dims)
    return ",".join(f"{name}:{'+'.join(axes)}" for name, axes in splits.items()) or "replicated"


def text_of(tensor):
    node = tensor._weft_node
    where = spec_of(node.session, node.type.dims) if node.session.mesh.axes else ""
    head = f"tensor {node.type}" + (f" {where}" if where else "")
    if node.session.trace is not None and node.data is None:
        return f"<{head}, being recorded>"
    return head + "\n" + numpy.array2string(tensor._data(), threshold=200, edgeitems=3, separator=", ")


def svg_of(session, dims):
    """The blocks of ranks along the last two dims, in one colour a block."""
    splits, axes = splits_of(session, dims), session.mesh.axes
    last = list(dims[-2:])
    counts = [int(numpy.prod([axes[axis] for axis in splits.get(dim.name, ())], dtype=int)) for dim in last]
    rows, columns = ([1] * (2 - len(counts)) + counts)[-2:]
    width, height = 240, 120 if len(last) > 1 else 32
    cells = []
    for row in range(rows):
        for column in range(columns):
            at = row * columns + column
            x, y, w, h = column * width / columns, row * height / rows, width / columns, height / rows
            cells.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{_COLOURS[at % 8]}" stroke="white">'
                         f"<title>block {at}</title></rect>")
    names = " by ".join(_escaped(f"{dim.name}:{dim.size}") for dim in last) or "scalar"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 18}">{"".join(cells)}'
            f'<text x="0" y="{height + 14}" font-size="12">{names}: {_escaped(spec_of(session, dims))}</text></svg>')


def html_of(tensor):
    node = tensor._weft_node
    return f"<div>{svg_of(node.session, node.type.dims)}<pre>{_escaped(text_of(tensor))}</pre></div>"


# ---- plans ------------------------------------------------------------------------------------------------------------------

_MOST_TENSORS = 30  # rows of a plan's table


def _bytes(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def _bar(parts):
    """One bar of a rank's memory, in proportion: [(name, bytes)]."""
    total, x, cells = sum(size for _, size in parts) or 1, 0.0, []
    for at, (name, size) in enumerate(parts):
        width = 480 * size / total
        cells.append(f'<rect x="{x:.1f}" y="0" width="{width:.1f}" height="20" fill="{_COLOURS[at]}"><title>{name}: {_bytes(size)}</title></rect>'
                     f'<text x="{120 * at}" y="36" font-size="12" fill="{_COLOURS[at]}">{name} {_bytes(size)}</text>')
        x += width
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="480" height="42">{"".join(cells)}</svg>'


def _table(head, rows):
    lines = []
    for kind, row in [("th", head), *[("td", row) for row in rows]]:
        lines.append("<tr>" + "".join(f"<{kind}>{_escaped(str(item))}</{kind}>" for item in row) + "</tr>")
    return f"<table>{''.join(lines)}</table>" if rows else ""


def plan_html_of(plan):
    """What one rank holds, what it moves, and where each tensor lives."""
    memory, tensors = plan["memory"], plan["tensors"]
    parts = [("variables", memory["parameters"]), ("slots", memory["slots"]), ("inputs", memory["inputs"]), ("temporaries", memory["arena"])]
    head = _escaped(f"mesh {plan['mesh'] or 'of one rank'}, layout {plan['layout'] or 'none'}: {plan['steps']} steps, {plan['flops']:.3g} flops a rank")
    moved = [(line["axes"], line["collective"], line["count"], _bytes(line["bytes"])) for line in plan["traffic"]]
    placed = [(t["name"], t["kind"], t["dtype"], t["spec"], _bytes(t["bytes"])) for t in tensors[:_MOST_TENSORS]]
    more = f"<p>and {len(tensors) - _MOST_TENSORS} more</p>" if len(tensors) > _MOST_TENSORS else ""
    return (f"<div><p>{head}</p>{_bar(parts)}{_table(('axes', 'collective', 'times', 'bytes of a rank'), moved)}"
            f"{_table(('tensor', 'kind', 'dtype', 'where', 'bytes of a rank'), placed)}{more}</div>")

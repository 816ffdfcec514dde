"""_show: how tensors look: a line and numbers; in a notebook their shards as a picture."""
import html

import numpy

_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")


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
    names = " by ".join(html.escape(f"{dim.name}:{dim.size}") for dim in last) or "scalar"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 18}">{"".join(cells)}'
            f'<text x="0" y="{height + 14}" font-size="12">{names}: {html.escape(spec_of(session, dims))}</text></svg>')


def html_of(tensor):
    node = tensor._weft_node
    return f"<div>{svg_of(node.session, node.type.dims)}<pre>{html.escape(text_of(tensor))}</pre></div>"

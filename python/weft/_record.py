"""_record: what lazy tensors are made of: nodes that Python records, and what each kind of node is, found once by the library.

A node is an op, its operands and, once it is known, its numbers. What an op gives (dims, dtype) is asked of the library in a graph
of its own, the first time that an op of this name meets operands of these types and these attributes; after that it is looked up.
So errors come at the line that makes them, and recording is a dictionary's work.
"""
import contextlib
import sys
import weakref

import numpy

from . import _c as c, _call
from ._convert import fields_of, without_const
from ._frames import NOT_THE_USERS
from ._numbers import DTYPES, did_you_mean
from ._values import Dim, Handle, Value


class Type:
    """Dims and a dtype: one object for each, so that `is` compares them."""

    __slots__ = ("dims", "dtype", "leaf")
    known = {}

    @classmethod
    def of(cls, dims, dtype):
        key = (tuple(dims), dtype)
        made = cls.known.get(key)
        if made is None:
            made = cls.known[key] = cls()
            made.dims, made.dtype = tuple(Dim(*dim) for dim in dims), dtype
            made.leaf = Info("input", (made,), None)
        return made

    def __str__(self):
        return f"[{', '.join(f'{d.name}:{d.size}' for d in self.dims)}] {self.dtype}"


class Info:
    """One kind of node. build(graph, values): its values in a graph, by those of its operands: one, or a list of several.

    types: of what it gives. shape: how several are handed to the caller (None: it is one). variables: what it makes in the session,
    {name: Type}. said: its name and attributes, for sentences."""

    __slots__ = ("name", "types", "build", "shape", "variables", "said", "constant", "number", "differentiates", "is_random", "state",
                 "operands", "is_step")
    count = 0

    def __init__(self, name, types, build, said=()):
        Info.count += 1
        self.name, self.types, self.build, self.said, self.number = name, types, build, said, Info.count
        self.shape = self.constant = self.state = None
        self.operands = ()
        self.variables, self.differentiates, self.is_random, self.is_step = {}, False, False, False


class Node:
    __slots__ = ("info", "operands", "data", "home", "place", "needs", "ref", "type", "at", "mark", "failed", "session", "__weakref__")

    def __init__(self, info, operands, of_type, place, needs, session):
        self.info, self.operands, self.type, self.place, self.needs, self.session = info, operands, of_type, place, needs, session
        self.data = self.home = self.ref = self.failed = None
        self.mark = 0


_parts = []


def part(index):
    """The kind of node that is number `index` of what its operand gives."""
    while len(_parts) <= index:
        _parts.append(Info("part", (), len(_parts)))
    return _parts[index]


def place_of_user():
    """Code and line of the caller outside this package, and outside numpy where that called it."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__package__") in NOT_THE_USERS and frame.f_back:
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


def said_place(place):
    return f"{place[0].co_filename.rsplit('/', 1)[-1]}:{place[1]}"


# ---- dims by their names --------------------------------------------------------------------------------------------------


def dim_named(text, known, what):
    """The dim that a text says: "batch:32", or "batch" of those that are known."""
    name, colon, size = text.partition(":")
    if colon:
        if not size.isdigit():
            raise ValueError(f"{what}: {text!r} is no dim; write its name and its size, as batch:32")
        return Dim(name, int(size))
    for dim in known:
        if dim.name == name:
            return dim
    names = [dim.name for dim in known]
    raise ValueError(f"{what}: there is no dim {name}{did_you_mean(name, names)}; there are {', '.join(names) or 'none'}, and a new one is "
                     f"given its size, as {name or 'batch'}:32")


def dims_named(given, known, what):
    """Dims of a text, "batch hidden:64", of a list of dims or such texts, or of one Dim."""
    if isinstance(given, str):
        given = given.replace(",", " ").split()
    if isinstance(given, Dim):
        given = [given]
    for dim in given:
        if not isinstance(dim, (str, tuple, list)):
            names = ", ".join(one.name for one in known) or "none"
            raise TypeError(f"{what}: {dim!r} is no dim; dims are named, as \"batch\", and there are {names}")
    return tuple(dim_named(dim, known, what) if isinstance(dim, str) else dim for dim in given)


def _resolved(kind, given, known, what):
    """Texts in place of dims, of a parameter or field of this type, become dims."""
    kind = without_const(kind).rstrip("* ")
    if kind == "weft_dim" and isinstance(given, str):
        return dim_named(given, known, what)
    if kind == "weft_shape" and isinstance(given, (str, list, tuple)):
        return dims_named(given, known, what)
    if isinstance(given, dict) and fields_of(kind):
        fields = {field["name"]: field["type"] for field in fields_of(kind)}
        return {key: _resolved(fields.get(key, fields.get(key[:-1], "")), item, known, what) for key, item in given.items()}
    return given


hidden = []  # dims that vmap hides, outermost first


@contextlib.contextmanager
def vmapped(dim):
    hidden.append(dim)
    try:
        yield
    finally:
        hidden.pop()


def is_mapped():
    return bool(hidden)


# ---- keys and templates ---------------------------------------------------------------------------------------------------


class Hole:
    """Where an operand stands in the arguments of an op."""

    __slots__ = ("at",)

    def __init__(self, at):
        self.at = at


def freeze(given, operands):
    """A key of one argument, its tensors by their types; they are put behind the operands."""
    if type(given) is str:
        return given
    node = getattr(given, "_weft_node", None)
    if node is not None:
        operands.append(node)
        return node.type
    if isinstance(given, (tuple, list)):
        return (type(given), *[freeze(item, operands) for item in given])
    if isinstance(given, dict):
        return (dict, *[(key, freeze(item, operands)) for key, item in given.items()])
    if isinstance(given, float):
        return (float, given.hex())
    if isinstance(given, numpy.ndarray) or isinstance(given, numpy.generic) and given.dtype.kind not in "biuf":
        raise TypeError(f"an array of shape {given.shape} is no tensor, whose dims have names: weft.tensor(array, \"batch pixel\") gives it names")
    try:
        hash(given)
    except TypeError:
        raise TypeError(f"{given!r} is nothing that an op takes") from None
    return (type(given), given)


def with_holes(given, counter):
    """The argument with a Hole for each tensor, in freeze's order."""
    if getattr(given, "_weft_node", None) is not None:
        counter.append(None)
        return Hole(len(counter) - 1)
    if isinstance(given, tuple) and hasattr(given, "_fields"):
        return type(given)(*[with_holes(item, counter) for item in given])
    if isinstance(given, (tuple, list)):
        return type(given)(with_holes(item, counter) for item in given)
    if isinstance(given, dict):
        return {key: with_holes(item, counter) for key, item in given.items()}
    return given


def fill(given, values):
    if isinstance(given, Hole):
        return values[given.at]
    if isinstance(given, tuple) and hasattr(given, "_fields"):
        return type(given)(*[fill(item, values) for item in given])
    if isinstance(given, (tuple, list)):
        return type(given)(fill(item, values) for item in given)
    if isinstance(given, dict):
        return {key: fill(item, values) for key, item in given.items()}
    return given


def values_in(result, found):
    """The values in what a builder gave, in order, and the same with a Hole for each."""
    if isinstance(result, Value):
        found.append(result)
        return Hole(len(found) - 1)
    if isinstance(result, tuple) and hasattr(result, "_fields") and not isinstance(result, Dim):
        return type(result)(*[values_in(item, found) for item in result])
    if type(result) in (tuple, list):
        return type(result)(values_in(item, found) for item in result)
    return result


# ---- what an op is ---------------------------------------------------------------------------------------------------------

infos = {}  # by name, attributes and the operands' types
_RANDOM = ("random_", "dropout")
_BEGUN = ("scan_", "cond_begin", "cond_else", "cond_end", "recompute_", "graph_", "input", "variable", "slot", "group", "at", "built")


def scratch_graph(types):
    from . import Graph

    graph = Graph()
    return graph, [graph.input(f"operand{i}", of.dims, of.dtype) for i, of in enumerate(types)]


def inferred(info, operand_types, variables_too=False):
    """Fills in what the library says that a node of this kind gives."""
    from . import trainable

    graph, values = scratch_graph(operand_types)
    found = []
    shape = values_in(info.build(graph, values), found)
    info.operands = tuple(operand_types)
    if not found:
        info.constant = shape
        return info
    info.types = tuple(Type.of(value.dims, value.dtype) for value in found)
    info.shape = None if isinstance(shape, Hole) else shape
    if variables_too:
        for value in found:
            if value.dtype in ("f32", "f64", "bf16", "f16"):
                info.variables.update({v.name: Type.of(v.dims, v.dtype) for v in trainable(value)})
    return info


def _taken(function, given, options, known):
    wanted = [p for p in function["parameters"] if p["type"] != "weft_error *" and p["name"] not in _call.filled(function)]
    has_graph = any(p["type"] == "weft_graph *" for p in wanted)
    if has_graph:
        wanted = [p for p in wanted if p["type"] != "weft_graph *"]
    taken = _call._taken(function, wanted, given, options)
    kinds = {p["name"]: p["type"] for p in wanted}
    taken = {name: _resolved(kinds[name], item, known, function["name"][5:]) for name, item in taken.items()}
    if isinstance(taken.get("options"), dict):
        kind = without_const(kinds["options"]).rstrip("* ")
        taken["options"] = _resolved(kind, taken["options"], known, function["name"][5:])
    return taken, has_graph


def infer(key, name, given, options, operands):
    """The kind of node of an op that is met for the first time."""
    function = c.functions.get("weft_" + name)
    if function is None or not _call.is_plain(function) or name.startswith(_BEGUN):
        raise TypeError(f"{name} is not for lazy tensors; scans and branches of theirs are weft.scan, weft.while_loop and weft.cond")
    known = [dim for node in operands for dim in node.type.dims]
    counter = []  # in freeze's order, whatever the order of parameters
    template, has_graph = _taken(function, with_holes(given, counter), with_holes(options, counter), known)
    graph_name = next((p["name"] for p in function["parameters"] if p["type"] == "weft_graph *"), None)

    def build(graph, values):
        ready = fill(template, values)
        options_given = ready.pop("options", None) or {}
        if has_graph:
            ready[graph_name] = graph
        return _call.call("weft_" + name, **ready, **options_given)

    info = Info(name, (), build, tuple((word, arg) for word, arg in template.items() if not isinstance(arg, Hole)))
    takes_options = any(p["name"] == "options" for p in function["parameters"])
    inferred(info, [node.type for node in operands], takes_options)
    info.is_random = name.startswith(_RANDOM)
    infos[key] = info
    return info

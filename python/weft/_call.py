"""_call: the call: its arguments by name, what the library fills, the caller's place, the error.

    call("weft_add", a, b)                          a Value
    call("weft_sort", x, dim, True)                 (sorted, ids): what C fills through a pointer comes behind the result
    call("weft_text_open", path, 64, 1)             a handle, closed when nobody has it any more
"""
import contextlib
import ctypes
import sys

from . import _c as c
from ._convert import Filled, fields_of, finish, from_c, has_raised, is_filled, is_plain_struct, is_value, to_c, without_const
from ._numbers import did_you_mean, is_number, scalar
from ._values import Error, Handle, Opened, Value, new_lock

# Parameters that C fills with as many values as another parameter has: no prototype says so.
FILLED = {"weft_gradients": ("gradients", "with_respect_to"), "weft_gradients_seeded": ("gradients", "with_respect_to"),
          "weft_jacobian": ("jacobians", "with_respect_to"), "weft_hessian_vector": ("products", "with_respect_to"),
          "weft_accumulate": ("kept", "variables")}
FIRST = ("weft_gradients", "weft_gradients_seeded", "weft_jacobian", "weft_hessian_vector")  # return the first of these: left out
OPTIONAL = {"weft_embedding_bag": "weights", "weft_require": "number"}  # values that may be None; of optimizers the loss
BESIDE = {  # operands of which some may be numbers, of the others' dtype
    **{"weft_" + name: ("a", "b") for name in (
        "add", "sub", "mul", "div", "floor_div", "mod", "pow", "maximum", "minimum", "less", "less_equal", "greater",
        "greater_equal", "equal", "not_equal", "where")},
    "weft_scale": ("x", "by"), "weft_shift": ("x", "by"), "weft_pad": ("x", "value")}  # fmt: skip


def filled(function):
    """The names of the parameters that call() has the library fill."""
    wanted = [p for p in function["parameters"] if p["type"] != "weft_error *"]
    kinds = {p["name"]: without_const(p["type"]).rstrip("* ") for p in wanted}
    if function["returns"] == "weft_value":
        many = FILLED.get(function["name"], ("",))[0]
        return [p["name"] for p in wanted if is_filled(p) and (p["name"] == many or is_value(kinds[p["name"]]))]
    if function["returns"] in ("weft_status", "void") and wanted:
        last, kind = wanted[-1], kinds[wanted[-1]["name"]]
        opens = function["name"].endswith("_open") and last["type"].count("*") == 2
        if opens or is_filled(last) and is_plain_struct(kind):
            return [last["name"]]
    return []


def _make_filled(function, parameter, taken):
    """Memory for one such parameter; `taken` are the arguments, by name."""
    kind = without_const(parameter["type"]).rstrip("* ")
    if function["name"] in FILLED and FILLED[function["name"]][0] == parameter["name"]:
        n = len(taken[FILLED[function["name"]][1]])
        return Filled(kind, (c.types[kind] * max(1, n))(), n)
    if parameter["type"].count("*") == 2:
        return Filled(kind + " *", ctypes.POINTER(c.types[kind])())
    return Filled(kind, c.types[kind]())


lock = new_lock()  # builders of one graph, and runs, go one after another, whatever thread calls
_places = []  # of what was recorded, while it is built


@contextlib.contextmanager
def at_place(place):
    """Builders stand at this place, code and line, in place of their caller's."""
    _places.append(place)
    try:
        yield
    finally:
        _places.pop()


def _place():
    """File and line of the caller outside this package: errors name it."""
    if _places and _places[-1]:
        return _places[-1][0].co_filename.encode(), _places[-1][1]
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0] and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename.encode(), frame.f_lineno


def _taken(function, wanted, given, options):
    """Arguments by the names of the parameters; what is left of the options goes to the parameter of that name."""
    taken = dict(zip((p["name"] for p in wanted), given))
    options = dict(options)
    for parameter in wanted[len(given):]:
        if parameter["name"] in options:
            taken[parameter["name"]] = options.pop(parameter["name"])
        elif parameter["name"] == "options":
            taken["options"], options = options or None, {}
        elif _is_optional(function, parameter):
            taken[parameter["name"]] = None
        elif parameter["name"] == "flags":
            taken["flags"] = 0
    if options or len(given) > len(wanted) or len(taken) != len(wanted):
        names = [parameter["name"] for parameter in wanted]
        near = "".join(did_you_mean(key, names) for key in options)
        raise TypeError(f"{function['name'][5:]}({', '.join(names)}) was given {len(given)} arguments"
                        + "".join(f", {key}=" for key in options) + near)
    return taken


def _is_optional(function, parameter):
    if parameter["type"] != "weft_value":
        return False
    takes_gradients = any(p["type"] == "const weft_optimizer_options *" for p in function["parameters"])
    return OPTIONAL.get(function["name"]) == parameter["name"] or takes_gradients and parameter["name"] == "loss"


def constant_beside(graph, number, dtype, dims, what):
    """A tensor of one number that the dtype has: of long integers, of which C's double has the first 53 bits, in two parts."""
    number = scalar(number, dtype, what)
    if number != number or float(number) == number:
        return call("weft_constant", graph, dtype, dims, float(number))
    high, low = (call("weft_constant", graph, dtype, (), part) for part in (number >> 32, number & 0xFFFFFFFF))
    made = call("weft_add", call("weft_mul", high, call("weft_constant", graph, dtype, (), 1 << 32)), low)
    return call("weft_broadcast_to", made, dims) if dims else made


def _numbers_beside(function, taken):
    """Numbers beside a value: they take its dtype, and fit it, or are refused."""
    beside = BESIDE.get(function["name"], ())
    value = next((taken[name] for name in beside if isinstance(taken.get(name), Value)), None)
    kinds = {parameter["name"]: parameter["type"] for parameter in function["parameters"]}
    for name in beside:
        if value is not None and is_number(taken[name]):
            what = f"{function['name'][5:]}: {value.name or 'the value'}"
            if kinds[name] == "weft_value":
                taken[name] = constant_beside(value.graph, taken[name], value.dtype, (), what)
            else:
                taken[name] = scalar(taken[name], value.dtype, what)


def call(name, /, *given, **options):
    """weft_NAME by Python's values. An error parameter is supplied; options go to the parameter of a struct's type. What the library
    fills comes back behind the result, or in place of it where that is a status."""
    function = c.functions[name]
    ways_out = filled(function)
    wanted = [p for p in function["parameters"] if p["type"] != "weft_error *" and p["name"] not in ways_out]
    taken = _taken(function, wanted, given, options)
    _numbers_beside(function, taken)
    keep, ready, error = [], [], c.types["weft_error"]()
    for parameter in function["parameters"]:
        if parameter["name"] in ways_out:
            keep.append(_make_filled(function, parameter, taken))
            ready.append(keep[-1].raw if keep[-1].n is not None else ctypes.byref(keep[-1].raw))
        elif parameter["type"] == "weft_error *":
            ready.append(ctypes.byref(error))
        else:
            is_optional = _is_optional(function, parameter)
            ready.append(to_c({**parameter, "optional": is_optional}, taken[parameter["name"]], keep, function))
    with lock if function["returns"] == "weft_value" else contextlib.nullcontext():
        result = getattr(c.lib, name)(*ready)
        return _given_back(function, result, error, list(taken.values()), keep)


def _given_back(function, result, error, given, keep):
    graph = _graph_among(given)
    if has_raised() and graph is not None:
        graph.recover()
    if function["returns"] == "weft_status" and not error.message:
        error.message = function["name"].encode()
    finish(result if function["returns"] == "weft_status" else error.status, error)
    back = [item.given_back(graph) for item in keep if isinstance(item, Filled)]
    _keep_used(keep + given, back)
    if function["returns"] not in ("weft_status", "void"):
        made = _result(function, result, graph)
        back = back if function["name"] in FIRST else [made, *back]
    return None if not back else back[0] if len(back) == 1 else tuple(back)


def _result(function, result, graph):
    kind = without_const(function["returns"])
    if kind == "weft_value":
        looks_up = any(p["type"] in ("weft_error *", "const weft_program *") for p in function["parameters"])
        return built(function["name"], result, graph, c.lib.weft_at if looks_up else c.lib.weft_built)
    if not is_plain_struct(kind.rstrip("* ")):
        return result.decode() if isinstance(result, bytes) else result
    if kind.endswith("*"):
        return from_c(kind.rstrip("* "), result.contents, graph) if result else None
    return from_c(kind, result, graph)


def _keep_used(given, back):
    """A data set has the function that it reads by, and reads into the program that it was started for: they live as long as it."""
    for one in back + given:
        if isinstance(one, Opened):
            known = {id(need) for need in one.needs}
            needed = (Handle, ctypes._CFuncPtr)
            one.needs.extend(other for other in given if isinstance(other, needed) and id(other) not in known | {id(one)})


def _graph_among(given):
    for value in given:
        if isinstance(value, Handle) and _is_graph(value):
            return value
        if isinstance(value, Value):
            return value.graph
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            graph = _graph_among(value)
            if graph is not None:
                return graph
    return None


def _is_graph(handle):
    return isinstance(handle.handle, ctypes.POINTER(c.types["weft_graph"]))


def built(name, value, graph, record=None):
    """A value that a builder made, at the caller's line; the graph's first error is raised as soon as it is there, and
    the graph is as it was before the call. record: weft_at, where it was there before and is looked up."""
    value = (record or c.lib.weft_built)(name[5:].encode(), *_place(), value)
    error = graph.error() if graph is not None else None
    if error is not None:
        graph.recover()
        raise error
    if value.id == 0:
        raise Error(1, f"{name[5:]} gave no value")
    return Value(graph, value)


def is_plain(function):
    """Whether call() can hand over everything."""
    ways_out = filled(function)

    def plain(parameter):
        kind = parameter["type"]
        if parameter["name"] in ways_out:
            return True
        if kind == "callback" or "length" in parameter or kind == "void *" or "**" in kind.replace(" ", ""):
            return False
        name = kind.replace("const", "").replace("*", "").strip()
        is_handle = name in c.model["structs"] and fields_of(name) is None
        return "*" not in kind or kind == "weft_error *" or is_handle or kind.startswith("const")
    return not function["variadic"] and all(plain(parameter) for parameter in function["parameters"])

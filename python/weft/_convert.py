"""_convert: Python's arguments to C's, and what C gave to Python's, by the types that the headers have."""
import ctypes
import keyword
from collections import namedtuple

import numpy

from . import _c as c
from ._numbers import DTYPES, did_you_mean, number, text as text_of
from ._values import Dim, Error, Handle, Opened, Value

# ---- Python's to C's ----------------------------------------------------------------------------------------------------

def _refuse(function, parameter, given):
    wanted = parameter["type"]
    if wanted == "weft_dim":
        wanted = 'a dim, as weft.Dim("batch", 32),'
    what = f"{function['name'][5:]}: {parameter.get('name') or 'a dim'}"
    if wanted == "weft_value" and hasattr(given, "__array__"):
        shape = f" of shape {given.shape}" if hasattr(given, "shape") else ""
        raise TypeError(f"{what} is an array{shape}, whose dims have no names; give it names: weft.tensor(array, \"batch pixel\")")
    raise TypeError(f"{what} is {given!r}; {wanted} is wanted")


class Filled:
    """Memory that C fills: `what` of this type, one or several."""

    def __init__(self, kind, raw, n=None):
        self.kind, self.raw, self.n = kind, raw, n

    def given_back(self, graph):
        if self.n is None:
            return from_c(self.kind, self.raw, graph)
        return [from_c(self.kind, self.raw[i], graph) for i in range(self.n)]


def without_const(kind):
    return " ".join(kind.replace("const", " ").replace("*", " * ").split())


def fields_of(kind):
    """A struct's fields, by its type's name; None for what is no struct, or opaque."""
    return c.model["structs"].get(kind, {"fields": None})["fields"]


def _is_list(kind):
    """A struct that is a list: a pointer, and how many there are, as weft_values and weft_spatials."""
    fields = fields_of(kind)
    return bool(fields and len(fields) == 2 and "*" in fields[0]["type"] and fields[1]["name"] == "n_" + fields[0]["name"])


def _to_array(field, given, keep, function):
    of = without_const(field["type"]).rstrip("* ")
    items = [to_c({"name": field["name"], "type": of}, item, keep, function) for item in given]
    keep.append((c.types[of] * max(1, len(items)))(*items))
    return keep[-1]


def _to_struct(name, given_fields, keep, function):
    """A struct from keyword arguments by the names of its fields; in_ is `in`, a word of Python's own."""
    described = {field["name"]: field for field in fields_of(name)}
    made = c.types[name]()
    for key, given in given_fields.items():
        if key not in described and keyword.iskeyword(key[:-1]) and key.endswith("_"):
            key = key[:-1]
        if key not in described:
            raise TypeError(f"{key} is no option of {name}{did_you_mean(key, described)}; there are {', '.join(described)}")
        if isinstance(given, list) and "n_" + key in described:
            setattr(made, "n_" + key, len(given))
            setattr(made, key, _to_array(described[key], given, keep, function))
        elif given is not None:  # None: what a field is that nobody set
            setattr(made, key, _to_field(described[key], given, keep, function))
    return made


def _to_field(field, given, keep, function):
    """True for what C fills: a field of weft_transformer_options is `facts`, and facts=True gives them behind the value."""
    kind = without_const(field["type"]).rstrip("* ")
    if given is True and is_filled(field) and is_value(kind):
        keep.append(Filled(kind, c.types[kind]()))
        return ctypes.pointer(keep[-1].raw)
    return to_c(field, given, keep, function)


def _to_dim(parameter, given, keep, function):
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        _refuse(function, parameter, given)
    name, size = given
    of = f"{function['name'][5:]}: a dim's"
    keep.append(text_of(name, f"{of} name"))  # a struct that is copied does not keep what its texts point to
    return c.types["weft_dim"](keep[-1], number(size, ctypes.c_int64, f"{of} size, of {name},"))


def _to_shape(parameter, given, keep, function):
    if not isinstance(given, (tuple, list)) or isinstance(given, Dim):
        _refuse(function, {**parameter, "type": "a list of dims"}, given)
    dims = [_to_dim({"name": "", "type": "weft_dim"}, dim, keep, function) for dim in given]
    return c.lib.weft_shape_make((c.types["weft_dim"] * max(1, len(dims)))(*dims), len(dims))


def _to_number(text, given, what):
    """A number, or the name of a constant; of an enum one of its own."""
    names = c.model["enums"][text]["entries"] if text in c.model["enums"] else c.constants
    if isinstance(given, str) and given not in names:
        raise TypeError(f"{what} is {given!r}{did_you_mean(given, names)}; it is a number, or the name of a constant")
    return number(names[given] if isinstance(given, str) else given, c.types[text], what)


def to_c(parameter, given, keep, function):
    """What C is handed for `given`; `keep` holds what must live until the call is over."""
    text = without_const(parameter["type"])
    what = f"{function['name'][5:]}: {parameter.get('name') or 'an item'}"
    if text == "weft_value":
        if given is None and parameter.get("optional"):
            return c.types[text]()
        return given._c if isinstance(given, Value) else _refuse(function, parameter, given)
    if text == "weft_dim":
        return _to_dim(parameter, given, keep, function)
    if text == "weft_shape":
        return _to_shape(parameter, given, keep, function)
    if _is_list(text) and isinstance(given, (tuple, list)) and not hasattr(given, "_asdict"):
        return c.types[text](_to_array(fields_of(text)[0], given, keep, function), len(given))
    if text == "weft_dtype":
        return dtype_number(given)
    if text == "callback" or text in c.model["callbacks"]:
        keep.append(c.type_of_field(parameter)(guarded(given, keep, c.model["callbacks"].get(text, parameter), function)))
        return keep[-1]
    if text == "char *":
        return None if given is None else text_of(given, what)
    if isinstance(given, (Handle, Value)) and text.endswith("*"):
        return given.handle if isinstance(given, Handle) else _refuse(function, parameter, given)
    if text.endswith("*") and given is None:
        return None
    given = given._asdict() if hasattr(given, "_asdict") else given
    if isinstance(given, dict) and fields_of(text.rstrip("* ")):
        made = _to_struct(text.rstrip("* "), given, keep, function)
        keep.append(made)
        return ctypes.pointer(made) if text.endswith("*") else made
    if isinstance(given, ctypes.Structure) and text.endswith("*"):
        return ctypes.pointer(given)
    if text in c.BASIC or text in c.model["enums"]:
        return _to_number(text, given, what)
    if fields_of(text) and isinstance(given, c.types[text]):
        return given
    return _refuse(function, parameter, given)


def dtype_number(given):
    """"f32", a numpy dtype, or the library's own number."""
    if isinstance(given, str) and given in DTYPES:
        return c.constants["WEFT_" + given.upper()]
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < c.constants["WEFT_DTYPES"]:
        return given
    if isinstance(given, (type, numpy.dtype)):  # numpy would take None for f64
        for name, dtype in DTYPES.items():
            if numpy.dtype(given) == dtype:
                return c.constants["WEFT_" + name.upper()]
    near = did_you_mean(given, DTYPES) if isinstance(given, str) else ""
    raise TypeError(f"dtype is {given!r}{near}; Weft has {', '.join(DTYPES)}")


_raised = []  # by Python functions that the library called; C knows no exceptions, so they wait until it returns


def _returned(kind, result, keep, what):
    """What C gets of what a Python function gave back."""
    if kind == "void" or result is None:  # of a status: that all is well
        return 0
    if kind == "const char *":
        keep.append(ctypes.create_string_buffer(text_of(result, what)))
        return ctypes.addressof(keep[-1])
    return _to_number(kind, result, what) if kind in c.BASIC or kind in c.model["enums"] else result


def guarded(called, keep, described, function):
    """What the library calls: a text it returns lives on in `keep`, and what it raises is raised by finish; until then a status
    says that it failed, with the exception's sentence."""
    kind, name = described["returns"], getattr(called, "__name__", "the function")

    def guard(*given):
        try:
            return _returned(kind, called(*given), keep, f"{function['name'][5:]}: what {name} returned")
        except BaseException as error:
            _raised.append(error)
            if kind != "weft_status":
                return 0
            if described["parameters"] and described["parameters"][-1]["type"] == "weft_error *":
                c.lib.weft_fail(given[-1], 1, b"%s", f"{type(error).__name__}: {error}".encode())
            return 1

    return guard


def has_raised():
    return bool(_raised)


def finish(status, error):
    """After a call: the exception of a function that the library called, else the library's own error."""
    if _raised:
        first = _raised[0]
        _raised.clear()
        raise first
    checked(status, error)


def checked(status, error):
    if status != 0:
        raise Error(status, error.message.decode(errors="replace"))


# ---- C's to Python's ----------------------------------------------------------------------------------------------------


def is_value(kind):
    """A value, or a struct of values alone: what a builder may fill."""
    return kind == "weft_value" or all(field["type"] == "weft_value" for field in fields_of(kind) or [{"type": kind}])


def _is_plain_field(field):
    kind = without_const(field["type"])
    return kind == "char *" or (kind in c.BASIC or kind in c.model["enums"] or kind in c.model["typedefs"]
                                or is_plain_struct(kind)) and "*" not in kind


def is_plain_struct(kind):
    """Of numbers, texts and dims alone: Python has it as a namedtuple."""
    return bool(fields_of(kind)) and all(_is_plain_field(field) for field in fields_of(kind))


def is_filled(parameter):
    """A pointer to one thing that is not const, of a struct or a value."""
    kind = parameter["type"]
    return kind.count("*") == 1 and "const" not in kind and "length" not in parameter


_tuples = {}


def _tuple_of(kind):
    if kind not in _tuples:
        names = [name + "_" if keyword.iskeyword(name) else name for name in (f["name"] for f in fields_of(kind))]
        _tuples[kind] = namedtuple(kind[5:], names, module=__name__)
    return _tuples[kind]


def from_c(kind, raw, graph):
    """Python's of what C gave: nothing in it points into C's memory."""
    if kind == "char *":
        return (raw or b"").decode()
    if kind == "weft_value":
        return Value(graph, c.types[kind].from_buffer_copy(raw)) if raw.id else None
    if kind == "weft_dim":
        return Dim(raw.name.decode(), raw.size) if raw.name else None
    if kind == "weft_shape":
        return tuple(from_c("weft_dim", raw.dims[d], graph) for d in range(raw.n_dims))
    if kind.endswith(" *"):
        return Opened(kind[5:-2], raw)
    if isinstance(raw, ctypes.Array):
        return tuple(from_c(kind, item, graph) for item in raw)
    if isinstance(raw, ctypes.Structure):
        return _tuple_of(kind)(*[from_c(without_const(f["type"]), getattr(raw, f["name"]), graph) for f in fields_of(kind)])
    return raw.decode() if isinstance(raw, bytes) else raw

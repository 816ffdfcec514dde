"""weft: mesh-parallel programs from Python, numpy arrays in and out.

    import weft
    batch, pixel, digit = weft.Dim("batch", 64), weft.Dim("pixel", 784), weft.Dim("digit", 10)
    g = weft.Graph(seed=1)
    x = g.input("x", [batch, pixel])
    y = g.input("y", [batch], "i32")
    w = g.variable("w", [pixel, digit], weft.normal(0.0, 0.05))
    loss = weft.mean(weft.cross_entropy(weft.einsum([batch, digit], x, w), y, digit))
    program = weft.Program(weft.Mesh("data:2"), "batch:data", [loss, weft.adam(loss, rate=1e-3)])
    program.write(x, images)
    program.write(y, labels)
    program.run()
    program.read(loss)

This is the C library and no second one: weft.NAME(...) is weft_NAME of the headers for every function there that takes
and returns what Python has (help(weft.relu) shows its prototype). Values, dims, lists of them, dtypes ("f32"), graphs,
meshes are handed over as they are; fields of an options struct are keyword arguments (in_=: the field `in`); a failure is a weft.Error with
the library's sentence. What is not covered is in weft.c, with its C types.
"""
import ctypes
import json
import keyword
import sys
import weakref
from collections import namedtuple

import numpy

from . import _c as c

__all__ = ["Dim", "Error", "Graph", "Layout", "Mesh", "Program", "Value", "c", "gradients", "version"]

Dim = namedtuple("Dim", "name size")
Dim.__doc__ = 'A named, sized direction of a tensor: Dim("batch", 32); a plain pair does as well.'

# What arrays are of; numpy has no bf16, whose numbers come and go as float32.
DTYPES = {"f32": numpy.dtype("float32"), "f64": numpy.dtype("float64"), "i32": numpy.dtype("int32"),
          "bf16": numpy.dtype("float32"), "f16": numpy.dtype("float16"), "i64": numpy.dtype("int64"),
          "u8": numpy.dtype("uint8")}
_STATUS = {number: name[5:].lower() for name, number in c.model["enums"]["weft_status"]["entries"].items()}


class Error(RuntimeError):
    """The library's sentence; .status says what kind of failure, as weft_status does: "usage", "io", "memory", ..."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = _STATUS.get(status, str(status))


# ---- calls: Python's arguments to C's, and the result back --------------------------------------------------------


def _refuse(function, parameter, given):
    raise TypeError(f"{function['name'][5:]}: {parameter['name']} is {given!r}; {parameter['type']} is wanted")


def _to_struct(name, fields, keep):
    """A struct from keyword arguments by the names of its fields; in_ is `in`, a word of Python's own."""
    described = {field["name"]: field for field in c.model["structs"][name]["fields"]}
    made = c.types[name]()
    for key, given in fields.items():
        if key not in described and keyword.iskeyword(key[:-1]) and key.endswith("_"):
            key = key[:-1]
        if key not in described:
            raise TypeError(f"{key} is no option of {name}; there are {', '.join(described)}")
        setattr(made, key, _to_c(described[key], given, keep, {"name": f"weft_{name}"}))
    return made


def _to_c(parameter, given, keep, function):
    """What C is handed for `given`; `keep` holds what must live until the call is over."""
    text = parameter["type"].replace("const ", "").replace("const", "")
    if text == "weft_value":
        return given._c if isinstance(given, Value) else _refuse(function, parameter, given)
    if text == "weft_dim":
        name, size = given
        keep.append(str(name).encode())  # a struct that is copied does not keep what its texts point to
        return c.types["weft_dim"](keep[-1], size)
    if text == "weft_shape":
        dims = (c.types["weft_dim"] * max(1, len(given)))(*[_to_c({"type": "weft_dim"}, d, keep, function) for d in given])
        return c.lib.weft_shape_make(dims, len(given))
    if text == "weft_values":
        values = (c.types["weft_value"] * max(1, len(given)))(*[_to_c({**parameter, "type": "weft_value"}, v, keep, function)
                                                                for v in given])
        keep.append(values)
        return c.types["weft_values"](values, len(given))
    if text == "weft_dtype":
        return dtype_number(given)
    if text == "callback":
        keep.append(c.type_of_field(parameter)(_guarded(given, keep)))
        return keep[-1]
    if text == "char *":
        return None if given is None else str(given).encode()
    if isinstance(given, (_Handle, Value)) and text.endswith("*"):
        return given.handle
    if text.endswith("*") and given is None:
        return None
    if isinstance(given, dict) and text.endswith("*") and text[:-1].strip() in c.model["structs"]:
        made = _to_struct(text[:-1].strip(), given, keep)
        keep.append(made)
        return ctypes.pointer(made)
    if isinstance(given, str) and given in c.constants:
        return c.constants[given]
    if isinstance(given, (bool, int, float, numpy.generic, ctypes.Structure)):
        return given.item() if isinstance(given, numpy.generic) else given
    return _refuse(function, parameter, given)


_raised = []  # by Python functions that the library called; C knows no exceptions, so they wait until it returns


def _guarded(function, keep):
    """What the library calls: a text it returns lives on in `keep`, and what it raises is raised by _finish."""

    def guarded(*given):
        try:
            result = function(*given)
        except BaseException as error:
            _raised.append(error)
            return 0
        if isinstance(result, str):
            keep.append(ctypes.create_string_buffer(result.encode()))
            return ctypes.addressof(keep[-1])
        return result

    return guarded


def _finish(status, error):
    """After a call: the exception of a function that the library called, else the library's own error."""
    if _raised:
        first = _raised[0]
        _raised.clear()
        raise first
    _checked(status, error)


def dtype_number(given):
    """"f32", a numpy dtype, or the library's own number."""
    for name, dtype in DTYPES.items():
        if given == name or (not isinstance(given, (str, int)) and numpy.dtype(given) == dtype):
            return c.constants["WEFT_" + name.upper()]
    if isinstance(given, int):
        return given
    raise TypeError(f"dtype is {given!r}; Weft has {', '.join(DTYPES)}")


def _to_bf16(array):
    """Rounded to the nearest, ties to even: the upper halves, as uint16."""
    bits = array.view(numpy.uint32)
    rounded = bits + numpy.uint32(0x7FFF) + (bits >> 16 & 1)
    return (numpy.where(numpy.isnan(array), bits | 0x400000, rounded) >> 16).astype(numpy.uint16)


def _from_bf16(halves):
    return (halves.astype(numpy.uint32) << 16).view(numpy.float32)


def _place():
    """File and line of the caller outside this module: errors name it."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] == __name__ and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename.encode(), frame.f_lineno


def _checked(status, error):
    if status != 0:
        raise Error(status, error.message.decode(errors="replace"))


def call(name, /, *given, **options):
    """weft_NAME by Python's values. An error parameter is supplied; options go to the parameter of a struct's type."""
    function = c.functions[name]
    wanted = list(function["parameters"])
    error = c.types["weft_error"]() if wanted and wanted[-1]["type"] == "weft_error *" else None
    if error is not None:
        wanted.pop()
    given = list(given)
    for parameter in wanted[len(given):]:
        if parameter["name"] in options:
            given.append(options.pop(parameter["name"]))
        elif parameter["name"] == "options":
            given.append(options or None)
            options = {}
    if options or len(given) != len(wanted):
        names = ", ".join(parameter["name"] for parameter in wanted)
        raise TypeError(f"{name[5:]}({names}) was given {len(given)} arguments" + "".join(f", {key}=" for key in options))
    keep = []
    ready = [_to_c(parameter, value, keep, function) for parameter, value in zip(wanted, given)]
    if error is not None:
        ready.append(ctypes.byref(error))
    result = getattr(c.lib, name)(*ready)
    if function["returns"] == "weft_status":
        return _finish(result, error if error is not None else c.types["weft_error"](message=name.encode()))
    if function["returns"] == "weft_value":
        if error is not None:
            _checked(error.status, error)
        return _built(name, result, given)
    return result.decode() if isinstance(result, bytes) else result


def _graph_among(given):
    for value in given:
        if isinstance(value, Graph):
            return value
        if isinstance(value, Value):
            return value.graph
        if isinstance(value, (list, tuple)):
            graph = _graph_among(value)
            if graph is not None:
                return graph
    return None


def _built(name, value, given):
    """A value that a builder made, at the caller's line; the graph's first error is raised as soon as it is there, and
    the graph is as it was before the call."""
    graph = _graph_among(given)
    value = c.lib.weft_at(name[5:].encode(), *_place(), value)
    error = graph.error() if graph is not None else None
    if error is not None:
        graph.recover()
        raise error
    if value.id == 0:
        raise Error(1, f"{name[5:]} gave no value")
    return Value(graph, value)


# ---- what owns something ----------------------------------------------------------------------------------------------


def _destroy(name, handle, needs):
    """`needs` are the objects that must outlive the handle: they are let go of after it."""
    getattr(c.lib, name)(ctypes.byref(handle))


class _Handle:
    """A handle of the library, destroyed when Python has no more use for it, and at exit in the reverse order."""

    def _own(self, kind, handle, *needs):
        self.handle = handle
        weakref.finalize(self, _destroy, f"weft_{kind}_destroy", handle, needs)


class _World:
    """The processes this one was started with: opened once, closed at exit after all else."""

    opened = None

    @classmethod
    def open(cls):
        if cls.opened is None:
            error, world = c.types["weft_error"](), c.types["weft_world"]()
            _checked(c.lib.weft_world_open(ctypes.byref(world), ctypes.byref(error)), error)
            weakref.finalize(cls, c.lib.weft_world_close)
            cls.opened = world
        return cls.opened


class Mesh(_Handle):
    """Mesh("data:2,model:2"): ranks as threads of this process, or its processes. plan=True: none, for plans only."""

    def __init__(self, text="", plan=False):
        error, handle = c.types["weft_error"](), ctypes.POINTER(c.types["weft_mesh"])()
        if plan:
            status = c.lib.weft_mesh_plan(text.encode(), ctypes.byref(handle), ctypes.byref(error))
        else:
            world = ctypes.byref(_World.open())
            status = c.lib.weft_mesh_create(world, text.encode(), ctypes.byref(handle), ctypes.byref(error))
        _checked(status, error)
        self._own("mesh", handle)

    @property
    def axes(self):
        axes = range(c.lib.weft_mesh_n_axes(self.handle))
        name, size = c.lib.weft_mesh_axis_name, c.lib.weft_mesh_axis_size
        return {name(self.handle, axis).decode(): size(self.handle, axis) for axis in axes}

    @property
    def is_root(self):
        return c.lib.weft_mesh_is_root(self.handle)

    def __str__(self):
        return c.lib.weft_mesh_text(self.handle).decode()

    def __repr__(self):
        return f"Mesh({str(self)!r})"


class Layout(_Handle):
    """Layout("batch:data,hidden:model", zero=3, over="batch")"""

    def __init__(self, text="", zero=0, over="batch"):
        error, handle = c.types["weft_error"](), ctypes.POINTER(c.types["weft_layout"])()
        _checked(c.lib.weft_layout_create(text.encode(), ctypes.byref(handle), ctypes.byref(error)), error)
        self._own("layout", handle)
        if zero:
            call("weft_layout_store", self, zero, over)

    def __str__(self):
        return c.lib.weft_layout_text(self.handle).decode()

    def __repr__(self):
        return f"Layout({str(self)!r})"


class Graph(_Handle):
    """The logical program: values with named dims."""

    def __init__(self, seed=0):
        handle = c.lib.weft_graph_create(seed)
        if not handle:
            raise MemoryError("weft_graph_create")
        self._own("graph", handle)

    def input(self, name, dims, dtype="f32"):
        return call("weft_input", self, name, dtype, dims)

    def variable(self, name, dims, initial=0.0, dtype="f32"):
        """initial: weft.normal(0.0, 0.05), weft.uniform(-1, 1) or a number"""
        if isinstance(initial, (int, float)):
            initial = c.lib.weft_constant_of(initial)
        return call("weft_variable", self, name, dtype, dims, initial)

    def constant(self, value, dims=(), dtype="f32"):
        return call("weft_constant", self, dtype, dims, value)

    def error(self):
        found = c.lib.weft_graph_error(self.handle).contents
        return Error(found.status, found.message.decode(errors="replace")) if found.status else None

    def recover(self):
        """Forget the error: a mistake in one cell does not spoil the graph."""
        c.lib.weft_graph_clear_error(self.handle)

    def find(self, name):
        """The input, variable or named value of that name."""
        return call("weft_graph_find", self, name)


class Value:
    """One tensor of a graph. + - * / and comparisons are ops, by dim names; numbers may stand on either side."""

    def __init__(self, graph, raw):
        self.graph, self._c = graph, raw

    @property
    def dims(self):
        shape = c.lib.weft_shape_of(self._c).contents
        return tuple(Dim(shape.dims[d].name.decode(), shape.dims[d].size) for d in range(shape.n_dims))

    @property
    def dtype(self):
        return c.lib.weft_dtype_name(c.lib.weft_dtype_of(self._c)).decode()

    @property
    def name(self):
        return (c.lib.weft_name_of(self._c) or b"").decode()

    def __repr__(self):
        return f"<{self.name or 'value'} [{', '.join(f'{d.name}:{d.size}' for d in self.dims)}] {self.dtype}>"

    def _with(self, name, other, swapped=False):
        if isinstance(other, (int, float)):
            other = self.graph.constant(float(other), (), self.dtype)
        if not isinstance(other, Value):
            return NotImplemented
        return call(name, other, self) if swapped else call(name, self, other)

    def __add__(self, other):
        return call("weft_shift", self, other) if isinstance(other, (int, float)) else self._with("weft_add", other)

    def __mul__(self, other):
        return call("weft_scale", self, other) if isinstance(other, (int, float)) else self._with("weft_mul", other)

    def __sub__(self, other):
        return call("weft_shift", self, -other) if isinstance(other, (int, float)) else self._with("weft_sub", other)

    def __truediv__(self, other):
        return self._with("weft_div", other)

    def __rsub__(self, other):
        return self._with("weft_sub", other, swapped=True)

    def __rtruediv__(self, other):
        return self._with("weft_div", other, swapped=True)

    def __neg__(self):
        return call("weft_neg", self)

    def __lt__(self, other):
        return self._with("weft_less", other)

    def __le__(self, other):
        return self._with("weft_less_equal", other)

    def __gt__(self, other):
        return self._with("weft_greater", other)

    def __ge__(self, other):
        return self._with("weft_greater_equal", other)

    __radd__, __rmul__ = __add__, __mul__


class Program(_Handle):
    """A graph compiled for one mesh and layout. values: what can be read, and updates to carry out.

    layout: a Layout or its text. options: the fields of weft_compile_options, as strict=True, share=other_program, or
    policy={"name": "mine", "pick": function}: functions are called with C's arguments (weft/research/policy.h)."""

    def __init__(self, mesh, layout, values, **options):
        layout = layout if isinstance(layout, Layout) else Layout(layout or "")
        values = [values] if isinstance(values, Value) else list(values)
        keep, error, handle = [], c.types["weft_error"](), ctypes.POINTER(c.types["weft_program"])()
        wanted = {parameter["name"]: parameter for parameter in c.functions["weft_compile"]["parameters"]}
        ready = [_to_c(wanted[name], given, keep, c.functions["weft_compile"])
                 for name, given in (("mesh", mesh), ("layout", layout), ("values", values), ("options", options or None))]
        status = c.lib.weft_compile(*ready, ctypes.byref(handle), ctypes.byref(error))
        if _raised:  # the program was compiled by a policy that had failed
            c.lib.weft_program_destroy(ctypes.byref(handle))
        _finish(status, error)
        # Whatever an option lends the program (a program that shares its variables) lives as long as it does.
        self._own("program", handle, mesh, *values, keep, options)
        self.mesh, self.values = mesh, values

    def write(self, value, data):
        """The whole tensor: an array of the value's dims. Floats may become f32; floats do not become integers."""
        wanted, shape = DTYPES[value.dtype], tuple(d.size for d in value.dims)
        array = numpy.asarray(data)
        if array.shape != shape:
            raise ValueError(f"{value!r} was given an array of shape {array.shape}")
        array = numpy.ascontiguousarray(array.astype(wanted, casting="same_kind"))
        if value.dtype == "bf16":
            array = _to_bf16(array)
        error = c.types["weft_error"]()
        _checked(c.lib.weft_write(self.handle, value._c, dtype_number(value.dtype), array.ctypes.data, array.nbytes,
                                  ctypes.byref(error)), error)

    def find(self, name):
        """The input, variable, slot or named value of that name that the program keeps."""
        error = c.types["weft_error"]()
        value = c.lib.weft_find(self.handle, name.encode(), ctypes.byref(error))
        _checked(error.status, error)
        return Value(self.values[0].graph, value)

    def run(self, times=1):
        error = c.types["weft_error"]()
        for _ in range(times):
            _checked(c.lib.weft_run(self.handle, ctypes.byref(error)), error)

    def read(self, value):
        """The whole tensor as an array; a scalar as a number."""
        is_bf16 = value.dtype == "bf16"
        array = numpy.empty([d.size for d in value.dims], numpy.uint16 if is_bf16 else DTYPES[value.dtype])
        error = c.types["weft_error"]()
        _checked(c.lib.weft_read(self.handle, value._c, dtype_number(value.dtype), array.ctypes.data, array.nbytes,
                                 ctypes.byref(error)), error)
        array = _from_bf16(array) if is_bf16 else array
        return array if value.dims else array.item()

    def plan(self):
        """The plan as data: what weft_plan_json writes."""
        libc, text, size = ctypes.CDLL(None), ctypes.c_char_p(), ctypes.c_size_t()
        libc.open_memstream.restype = ctypes.POINTER(c.types["FILE"])
        file = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
        if not file:
            raise MemoryError("open_memstream")
        error = c.types["weft_error"]()
        status = c.lib.weft_plan_json(self.handle, file, ctypes.byref(error))
        libc.fclose(file)
        plan = text.value
        libc.free(text)
        _checked(status, error)
        return json.loads(plan)


# ---- functions ----------------------------------------------------------------------------------------------------------


def gradients(of, with_respect_to, zeros_allowed=False):
    """d(of)/d(each), as values."""
    keep, made = [], (c.types["weft_value"] * len(with_respect_to))()
    values = _to_c({"name": "with_respect_to", "type": "weft_values"}, with_respect_to, keep, {"name": "weft_gradients"})
    c.lib.weft_gradients(of._c, values, made, c.constants["WEFT_ZEROS_ALLOWED"] if zeros_allowed else 0)
    return [_built("weft_gradients", c.types["weft_value"].from_buffer_copy(value), [of]) for value in made]


def version():
    return c.lib.weft_version().decode()


def _is_plain(function):
    """Whether call() can hand over everything: nothing comes back through a parameter."""
    def plain(parameter):
        kind = parameter["type"]
        if kind == "callback" or "length" in parameter or kind == "void *" or "**" in kind.replace(" ", ""):
            return False
        name = kind.replace("const", "").replace("*", "").strip()
        is_handle = c.model["structs"].get(name, {"fields": ()})["fields"] is None
        return "*" not in kind or kind == "weft_error *" or is_handle or kind.startswith("const")
    return not function["variadic"] and all(plain(parameter) for parameter in function["parameters"])


_wrappers = {}  # not among the module's own names: weft.max is not Python's


def __getattr__(name):
    if name in _wrappers:
        return _wrappers[name]
    function = c.functions.get("weft_" + name)
    if function is None or not _is_plain(function):
        raise AttributeError(f"weft has no {name}" + (f"; weft.c.lib.weft_{name} is the C function" if function else ""))

    def wrapper(*given, **options):
        return call(function["name"], *given, **options)

    wrapper.__name__ = wrapper.__qualname__ = name
    parameters = ", ".join(f"{p['type']} {p['name']}".replace("* ", "*") for p in function["parameters"])
    returns = function["returns"] + ("" if function["returns"].endswith("*") else " ")
    wrapper.__doc__ = f"{returns}weft_{name}({parameters or 'void'})    <{function['header']}>"
    _wrappers[name] = wrapper
    return wrapper


def __dir__():
    return sorted(set(globals()) | {name[5:] for name, function in c.functions.items() if _is_plain(function)})

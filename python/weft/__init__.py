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
meshes are handed over as they are; fields of an options struct are keyword arguments (in_=: the field `in`); what C fills through a
pointer comes back behind the result; a failure is a weft.Error with the library's sentence. What is not covered is in weft.c, with its
C types.

    y, facts = weft.experts(x, name="experts", token=token, feature=embed, experts=("experts", 8), hidden=("hidden", 64))
    rows = weft.spatial_same(row, ("tap", 3), "row", 1, 1)      structs are namedtuples, or dicts by the names of their fields
    y = weft.max_pool(x, [rows])
"""
import ctypes
import json
import weakref

import numpy

from . import _c as c
from ._call import built as _built, call, filled, is_plain
from ._convert import checked, dtype_number, finish, from_c, has_raised, to_c
from ._values import DTYPES, Dim, Error, Handle, Value

__all__ = ["Dim", "Error", "Graph", "Layout", "Mesh", "Program", "Value", "c", "custom_gradient", "gradients", "trainable",
           "version"]


def _to_bf16(array):
    """Rounded to the nearest, ties to even: the upper halves, as uint16."""
    bits = array.view(numpy.uint32)
    rounded = bits + numpy.uint32(0x7FFF) + (bits >> 16 & 1)
    return (numpy.where(numpy.isnan(array), bits | 0x400000, rounded) >> 16).astype(numpy.uint16)


def _from_bf16(halves):
    return (halves.astype(numpy.uint32) << 16).view(numpy.float32)


# ---- what owns something ----------------------------------------------------------------------------------------------


class _World:
    """The processes this one was started with: opened once, closed at exit after all else."""

    opened = None

    @classmethod
    def open(cls):
        if cls.opened is None:
            error, world = c.types["weft_error"](), c.types["weft_world"]()
            checked(c.lib.weft_world_open(ctypes.byref(world), ctypes.byref(error)), error)
            weakref.finalize(cls, c.lib.weft_world_close)
            cls.opened = world
        return cls.opened


class Mesh(Handle):
    """Mesh("data:2,model:2"): ranks as threads of this process, or its processes. plan=True: none, for plans only."""

    def __init__(self, text="", plan=False):
        error, handle = c.types["weft_error"](), ctypes.POINTER(c.types["weft_mesh"])()
        if plan:
            status = c.lib.weft_mesh_plan(text.encode(), ctypes.byref(handle), ctypes.byref(error))
        else:
            world = ctypes.byref(_World.open())
            status = c.lib.weft_mesh_create(world, text.encode(), ctypes.byref(handle), ctypes.byref(error))
        checked(status, error)
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


class Layout(Handle):
    """Layout("batch:data,hidden:model", zero=3, over="batch")"""

    def __init__(self, text="", zero=0, over="batch"):
        error, handle = c.types["weft_error"](), ctypes.POINTER(c.types["weft_layout"])()
        checked(c.lib.weft_layout_create(text.encode(), ctypes.byref(handle), ctypes.byref(error)), error)
        self._own("layout", handle)
        if zero:
            call("weft_layout_store", self, zero, over)

    def __str__(self):
        return c.lib.weft_layout_text(self.handle).decode()

    def __repr__(self):
        return f"Layout({str(self)!r})"


class Graph(Handle):
    """The logical program: values with named dims."""

    def __init__(self, seed=0):
        handle = c.lib.weft_graph_create(seed)
        if not handle:
            raise MemoryError("weft_graph_create")
        self._own("graph", handle)
        self.rules = []  # Python functions that the library calls while it takes gradients

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


class Program(Handle):
    """A graph compiled for one mesh and layout. values: what can be read, and updates to carry out.

    layout: a Layout or its text. options: the fields of weft_compile_options, as strict=True, share=other_program, or
    policy={"name": "mine", "pick": function}: functions are called with C's arguments (weft/research/policy.h)."""

    def __init__(self, mesh, layout, values, **options):
        layout = layout if isinstance(layout, Layout) else Layout(layout or "")
        values = [values] if isinstance(values, Value) else list(values)
        keep, error, handle = [], c.types["weft_error"](), ctypes.POINTER(c.types["weft_program"])()
        wanted = {parameter["name"]: parameter for parameter in c.functions["weft_compile"]["parameters"]}
        ready = [to_c(wanted[name], given, keep, c.functions["weft_compile"])
                 for name, given in (("mesh", mesh), ("layout", layout), ("values", values), ("options", options or None))]
        status = c.lib.weft_compile(*ready, ctypes.byref(handle), ctypes.byref(error))
        if has_raised():  # the program was compiled by a policy that had failed
            c.lib.weft_program_destroy(ctypes.byref(handle))
        finish(status, error)
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
        checked(c.lib.weft_write(self.handle, value._c, dtype_number(value.dtype), array.ctypes.data, array.nbytes,
                                 ctypes.byref(error)), error)

    def find(self, name):
        """The input, variable, slot or named value of that name that the program keeps."""
        error = c.types["weft_error"]()
        value = c.lib.weft_find(self.handle, name.encode(), ctypes.byref(error))
        checked(error.status, error)
        return Value(self.values[0].graph, value)

    def run(self, times=1):
        error = c.types["weft_error"]()
        for _ in range(times):
            checked(c.lib.weft_run(self.handle, ctypes.byref(error)), error)

    def read(self, value):
        """The whole tensor as an array; a scalar as a number."""
        is_bf16 = value.dtype == "bf16"
        array = numpy.empty([d.size for d in value.dims], numpy.uint16 if is_bf16 else DTYPES[value.dtype])
        error = c.types["weft_error"]()
        checked(c.lib.weft_read(self.handle, value._c, dtype_number(value.dtype), array.ctypes.data, array.nbytes,
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
        checked(status, error)
        return json.loads(plan)


# ---- functions ----------------------------------------------------------------------------------------------------------


def gradients(of, with_respect_to, zeros_allowed=False):
    """d(of)/d(each), as values."""
    return call("weft_gradients", of, with_respect_to, c.constants["WEFT_ZEROS_ALLOWED"] if zeros_allowed else 0)[1]


def trainable(of):
    """The variables that `of` depends on and that gradients can be taken of."""
    variables = (c.types["weft_value"] * c.lib.weft_trainable(of._c, None, 0))()
    c.lib.weft_trainable(of._c, variables, len(variables))
    return [from_c("weft_value", variable, of.graph) for variable in variables]


def custom_gradient(in_, out, rule):
    """out, with gradients of one's own: rule(in_, out, dout) gives for each of in_ the gradient of sum(dout out), or None."""

    def fill(argument, values, made, dout, gradients):
        values = [from_c("weft_value", values.values[i], out.graph) for i in range(values.n_values)]
        found = rule(values, *(from_c("weft_value", value, out.graph) for value in (made, dout)))
        for i, gradient in enumerate(found):
            if gradient is not None:
                gradients[i] = gradient._c

    keep = []
    function = c.functions["weft_custom_gradient"]
    ready = [to_c(parameter, given, keep, function) for parameter, given in zip(function["parameters"], (in_, out, fill))]
    out.graph.rules += keep  # which gradients call, later
    return _built("weft_custom_gradient", c.lib.weft_custom_gradient(*ready, None), out.graph)


def version():
    return c.lib.weft_version().decode()


_wrappers = {}  # not among the module's own names: weft.max is not Python's


def __getattr__(name):
    if name in _wrappers:
        return _wrappers[name]
    function = c.functions.get("weft_" + name)
    if function is None or not is_plain(function):
        raise AttributeError(f"weft has no {name}" + (f"; weft.c.lib.weft_{name} is the C function" if function else ""))

    def wrapper(*given, **options):
        return call(function["name"], *given, **options)

    wrapper.__name__ = wrapper.__qualname__ = name
    parameters = ", ".join(f"{p['type']} {p['name']}".replace("* ", "*") for p in function["parameters"])
    returns = function["returns"] + ("" if function["returns"].endswith("*") else " ")
    wrapper.__doc__ = f"{returns}weft_{name}({parameters or 'void'})    <{function['header']}>"
    if filled(function):
        wrapper.__doc__ += f"; comes back, not handed over: {', '.join(filled(function))}"
    _wrappers[name] = wrapper
    return wrapper


def __dir__():
    return sorted(set(globals()) | {name[5:] for name, function in c.functions.items() if is_plain(function)})

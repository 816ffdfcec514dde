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

Lazy tensors need no program: what Python does is written down, and computed once somebody looks (docs/python.md).

    x, w = weft.tensor(images, "batch pixel"), weft.Variable("w", "pixel:784 digit:10", weft.normal(0.0, 0.05))
    loss = weft.mean(weft.cross_entropy(x @ w, weft.tensor(labels, "batch"), "digit"))
    weft.Adam(rate=1e-3).step(loss)
    print(loss)
"""
import ctypes
import importlib
import json
import os
import re
import signal
import warnings
import weakref
from collections import namedtuple

import numpy

from . import _c as c, _frames, _interrupt, _numbers, _show
from ._call import built as _built, call, lock as _lock, constant_beside, filled, is_plain
from ._convert import checked, dtype_number, finish, from_c, has_raised, to_c
from ._numbers import DTYPES
from ._values import Dim, Error, Handle, Value

__all__ = ["Batches", "Dataset", "Dim", "Error", "Graph", "Layer", "Layout", "Mesh", "Module", "Optimizer", "Parameter", "Program", "Recompiled",
           "Saved", "Session", "Tape", "Tensor", "Traffic", "Value", "Variable", "c", "cond", "custom_gradient", "data", "grad", "gradients", "jit", "load",
           "samples", "save", "scan", "session", "tensor", "trainable", "version", "vmap", "while_loop"]


# ---- what owns something ----------------------------------------------------------------------------------------------


def _dtype_name(given):
    dtype = dtype_number(given)
    return next(name for name in DTYPES if c.constants["WEFT_" + name.upper()] == dtype)


def _close_world(pid):
    if pid == os.getpid():  # of a process that was forked its parent closes it
        c.lib.weft_world_close()


_Failure, _SIGINT = c.types["weft_error"], int(signal.SIGINT)


class _World:
    """The processes this one was started with: opened once, closed at exit after all else."""

    opened = None

    @classmethod
    def open(cls):
        if cls.opened is None:
            error, world = c.types["weft_error"](), c.types["weft_world"]()
            checked(c.lib.weft_world_open(ctypes.byref(world), ctypes.byref(error)), error)
            weakref.finalize(cls, _close_world, os.getpid())
            cls.opened = world
        return cls.opened


class Mesh(Handle):
    """Mesh("data:2,model:2"): ranks as threads of this process, or its processes. plan=True: none, for plans only."""

    def __init__(self, text="", plan=False):
        error, handle, text = c.types["weft_error"](), ctypes.POINTER(c.types["weft_mesh"])(), _numbers.text(text, "Mesh: text")
        if plan:
            status = c.lib.weft_mesh_plan(text, ctypes.byref(handle), ctypes.byref(error))
        else:
            world = ctypes.byref(_World.open())
            status = c.lib.weft_mesh_create(world, text, ctypes.byref(handle), ctypes.byref(error))
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
        error, handle, text = c.types["weft_error"](), ctypes.POINTER(c.types["weft_layout"])(), _numbers.text(text, "Layout: text")
        checked(c.lib.weft_layout_create(text, ctypes.byref(handle), ctypes.byref(error)), error)
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
        handle = c.lib.weft_graph_create(_numbers.number(seed, ctypes.c_uint64, "Graph: seed"))
        if not handle:
            raise MemoryError("weft_graph_create")
        self._own("graph", handle)
        self.rules = []  # Python functions that the library calls while it takes gradients

    def input(self, name, dims, dtype="f32"):
        return call("weft_input", self, name, dtype, dims)

    def variable(self, name, dims, initial=0.0, dtype="f32"):
        """initial: weft.normal(0.0, 0.05), weft.uniform(-1, 1) or a number"""
        if _numbers.is_number(initial):
            initial = call("weft_constant_of", _numbers.scalar(initial, _dtype_name(dtype), f"variable: {name}"))
        return call("weft_variable", self, name, dtype, dims, initial)

    def constant(self, value, dims=(), dtype="f32"):
        """A tensor of one number, which the dtype has to have."""
        return constant_beside(self, value, _dtype_name(dtype), dims, "constant: it")

    def error(self):
        found = c.lib.weft_graph_error(self.handle).contents
        return Error(found.status, found.message.decode(errors="replace")) if found.status else None

    def recover(self):
        """Forget the error: a mistake in one cell does not spoil the graph."""
        c.lib.weft_graph_clear_error(self.handle)

    def find(self, name):
        """The input, variable or named value of that name."""
        return call("weft_graph_find", self, name)


def _warn_of_copies(mesh, layout):
    """Several ranks and no rule: each computes everything."""
    n_ranks = c.lib.weft_mesh_n_ranks(mesh.handle) if isinstance(mesh, Mesh) else 1
    if n_ranks > 1 and not set(re.findall(r"[:+]([^:+,?]+)", str(layout))) & set(mesh.axes):
        lacks = f"no rule of {layout} by their axes" if str(layout) else "no layout"
        text = f"{n_ranks} ranks and {lacks}: each computes everything; give one, as batch:{next(iter(mesh.axes), 'data')}"
        warnings.warn(text, RuntimeWarning, stacklevel=_frames.depth_of_user())


Traffic = namedtuple("Traffic", "axes kind count bytes")
Traffic.__module__ = __name__
Traffic.__doc__ = "What one rank moves over one set of axes with one collective in one run."


class Program(Handle):
    """A graph compiled for one mesh and layout. values: what can be read, and updates to carry out.

    layout: a Layout or its text. options: the fields of weft_compile_options, as strict=True, share=other_program, or
    policy={"name": "mine", "pick": function}: functions are called with C's arguments (weft/research/policy.h)."""

    def __init__(self, mesh, layout, values, **options):
        layout = layout if isinstance(layout, Layout) else Layout(layout or "")
        _warn_of_copies(mesh, layout)
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

    def _value(self, given, what):
        """A value, or the one of that name."""
        if isinstance(given, str):
            return self.find(given)
        if not isinstance(given, Value):
            raise TypeError(f"{what}: {given!r} is no value of the program; give what a builder gave, or the name of one (program.find)")
        return given

    def write(self, value, data):
        """The whole tensor of an input or variable (or of its name), the same by all ranks: an array, or lists, of the value's dims.

        Numbers are those of the array, whatever its dtype, but for the rounding of floats. What does not fit is refused, by its
        index: a fraction or NaN for integers, what is past the range, masked elements, what is no real number. Of a variable all
        ranks call it."""
        value = self._value(value, "write")
        shape, dtype, _ = value.array_kind
        if type(data) is not numpy.ndarray or data.dtype != dtype or data.shape != shape or not data.flags.c_contiguous:
            data = _numbers.array_of(data, value.dtype, shape, f"write: {value.name or 'the value'}")
        self._write_ready(value, data)

    def _write_ready(self, value, array):
        """An array of the value's dims and dtype, whose numbers were looked at."""
        if value.dtype == "bf16":
            array = _numbers.to_bf16(array)
        error = _Failure()
        with _lock:
            checked(c.lib.weft_write(self.handle, value._c, value.array_kind[2], array.ctypes.data, array.nbytes, ctypes.byref(error)), error)

    def find(self, name):
        """The input, variable, slot or named value of that name that the program keeps."""
        error = c.types["weft_error"]()
        value = c.lib.weft_find(self.handle, _numbers.text(name, "find: name"), ctypes.byref(error))
        checked(error.status, error)
        return Value(self.values[0].graph, value)

    def run(self, times=1):
        """So many runs. All ranks call it. Ctrl-C stops between two of them, or in one that has not written a variable yet, which does
        not count then; and the program may go on."""
        may_stop = _interrupt.may_stop()
        for _ in range(_numbers.number(times, ctypes.c_uint64, "run: times")):
            self._run_once(may_stop)

    def _run_once(self, may_stop):
        error, is_stopped = _Failure(), False
        with _lock:
            if may_stop:
                status = c.lib.weft_run_until(self.handle, _SIGINT, ctypes.byref(error))
                is_stopped = c.lib.weft_was_stopped(self.handle)
            else:
                status = c.lib.weft_run(self.handle, ctypes.byref(error))
        checked(status, error)
        if is_stopped:
            raise KeyboardInterrupt

    def read(self, value):
        """The whole tensor of a value (or of its name) as an array; a scalar as a number.

        All ranks call it, since each has a part: read on all, print on one.

            loss_now = program.read(loss)
            if mesh.is_root:
                print(loss_now)
        """
        array = self._read_array(self._value(value, "read"))
        return array if array.shape else array.item()

    def _read_array(self, value):
        shape, dtype, number = value.array_kind
        array, error = numpy.empty(shape, dtype), _Failure()
        with _lock:
            checked(c.lib.weft_read(self.handle, value._c, number, array.ctypes.data, array.nbytes, ctypes.byref(error)), error)
        return _numbers.from_bf16(array) if value.dtype == "bf16" else array

    def plan_usage(self, rank=0):
        """What one run needs of a rank, before it ever runs: bytes, flops, steps. Local, as all that follows."""
        return call("weft_plan_usage", self, rank)

    def measured_usage(self, rank=0):
        """What the last run of a rank of this process really did; zeros of another."""
        return call("weft_measured_usage", self, rank)

    def plan_traffic(self, rank=0):
        """What a rank moves in one run, as planned: a list of Traffic(axes, kind, count, bytes), as (("data",), "all_reduce", 2, 64)."""
        return self._traffic(c.lib.weft_plan_traffic, rank, "plan_traffic: rank")

    def measured_traffic(self, rank=0):
        """The same as it was sent in the last run of a rank of this process; counts are 0 before the first."""
        return self._traffic(c.lib.weft_measured_traffic, rank, "measured_traffic: rank")

    def _traffic(self, function, rank, what):
        n_ranks = c.lib.weft_mesh_n_ranks(self.mesh.handle)
        rank, axes = _numbers.number(rank, ctypes.c_int, what), list(self.mesh.axes)
        if not 0 <= rank < n_ranks:
            raise ValueError(f"{what} is {rank}; it is from 0 to {n_ranks - 1}")
        lines = (c.types["weft_traffic"] * function(self.handle, rank, None, 0))()
        function(self.handle, rank, lines, len(lines))
        return [Traffic(tuple(name for axis, name in enumerate(axes) if line.axes >> axis & 1),
                        c.lib.weft_convert_name(line.kind).decode(), line.count, line.bytes) for line in lines]

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

    def _repr_html_(self):
        return _show.plan_html_of(self.plan())


# ---- functions ----------------------------------------------------------------------------------------------------------


def gradients(of, with_respect_to, zeros_allowed=False):
    """d(of)/d(each): a list of values, as weft.gradients_seeded, weft.jacobian and weft.hessian_vector give one too."""
    return call("weft_gradients", of, with_respect_to, c.constants["WEFT_ZEROS_ALLOWED"] if zeros_allowed else 0)


def trainable(of):
    """The variables that `of` depends on and that gradients can be taken of."""
    if not isinstance(of, Value):
        raise TypeError(f"trainable: of is {of!r}; a value is wanted")
    variables = (c.types["weft_value"] * c.lib.weft_trainable(of._c, None, 0))()
    c.lib.weft_trainable(of._c, variables, len(variables))
    return [from_c("weft_value", variable, of.graph) for variable in variables]


def custom_gradient(in_, out, rule):
    """out, with gradients of one's own: rule(in_, out, dout) gives for each of in_ the gradient of sum(dout out), or None."""
    rule_of_user = getattr(rule, "__name__", "the rule")

    def fill(argument, values, made, dout, gradients):
        values = [from_c("weft_value", values.values[i], out.graph) for i in range(values.n_values)]
        found = rule(values, *(from_c("weft_value", value, out.graph) for value in (made, dout)))
        found = [found] if isinstance(found, Value) or found is None else list(found)
        if len(found) != len(values):
            raise ValueError(f"custom_gradient: {rule_of_user} gave {len(found)} gradients of {len(values)} values; it gives one of each, or None")
        for i, gradient in enumerate(found):
            if gradient is not None and not (isinstance(gradient, Value) and gradient.graph is out.graph):
                raise TypeError(f"custom_gradient: gradient {i} that {rule_of_user} gave is {gradient!r}; it is a value of the graph, or None")
            if gradient is not None:
                gradients[i] = gradient._c

    keep = []
    function = c.functions["weft_custom_gradient"]
    ready = [to_c(parameter, given, keep, function) for parameter, given in zip(function["parameters"], (in_, out, fill))]
    out.graph.rules += keep  # which gradients call, later
    return _built("weft_custom_gradient", c.lib.weft_custom_gradient(*ready, None), out.graph)


def samples(fields, n_samples, read, **options):
    """A data set of samples that read(name, sample) gives as numbers: weft.samples_open, whose function writes into C's memory.

        data = weft.samples([dict(name="image", width=pixel, dtype="f32"), dict(name="label", dtype="i32")], 60000, read)

    width: the input is [batch, width]; without it [batch]. What does not fit the dtype is refused, as by program.write."""
    fields = [{**field, "dtype": _dtype_name(field["dtype"])} for field in fields]

    def fill(argument, field, sample, row, error):
        name, dtype, width = (fields[field].get(key) for key in ("name", "dtype", "width"))
        shape = (width[1],) if width else ()
        array = _numbers.array_of(read(name, sample), dtype, shape, f"samples: {name} of sample {sample}")
        array = _numbers.to_bf16(array) if dtype == "bf16" else array
        ctypes.memmove(row, array.ctypes.data, array.nbytes)

    return call("weft_samples_open", fields=fields, n_samples=n_samples, read=fill, **options)


# ---- lazy tensors -------------------------------------------------------------------------------------------------------

from ._session import Recompiled, Session  # noqa: E402: they need what stands above
from ._tensor import Tensor, is_lazy, record, tensor  # noqa: E402
from ._variable import Tape, grad, variable as Variable  # noqa: E402
from ._trace import cond as _cond, jit, scan, vmap, while_loop  # noqa: E402
from ._saved import Saved, load, save  # noqa: E402
from ._module import Batches, Dataset, Layer, Module, Optimizer, Parameter, capitals as _capitals, layer_named as _layer_named  # noqa: E402


def session(mesh="", layout="", **options):
    """Lazy tensors are computed on this mesh by this layout from here on: weft.session("data:2", "batch:data", seed=1)."""
    Session.current = Session(mesh, layout, **options)
    return Session.current


def cond(condition, *given):
    """cond(condition, yes, no, *operands) of lazy tensors: one of two functions; cond(a, b) of values of a graph: weft_cond."""
    return _cond(condition, *given) if given and callable(given[0]) else call("weft_cond", condition, *given)


def _is_lazy_call(takes_graph, given, options):
    """Whether a lazy tensor is among the arguments; or a graph is missing, and a session stands in."""
    if is_lazy(given) or options and is_lazy(options.values()):
        return True
    return takes_graph and not any(isinstance(item, (Handle, Value)) for item in (*given, *options.values())) and len(given) + len(options) > 0


def _lazily(name, given, options):
    if name == "assign":
        return given[0].assign(*given[1:])
    return record(name, given, options)


def _class_of(name):
    """weft.Dense, weft.Adam: layers and optimizers of C's as objects."""
    found = _layer_named(name)
    if found is None:
        return None
    kind, is_optimizer = found

    def make(*given, **options):
        return (Optimizer if is_optimizer else Layer)(kind, *given, **options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"weft.{kind} as an object; its options are keywords.\n\n{_frames.comment_of(kind)}"
    return make


def version():
    return c.lib.weft_version().decode()


_wrappers = {}  # not among the module's own names: weft.max is not Python's


def __getattr__(name):
    if name == "data":  # weft.data is read when somebody asks for it
        return importlib.import_module("weft.data")
    if name in _wrappers:
        return _wrappers[name]
    function = c.functions.get("weft_" + name)
    if function is None and name[:1].isupper() and _class_of(name):
        _wrappers[name] = _class_of(name)
        return _wrappers[name]
    if function is None or not is_plain(function):
        way_out = f"; weft.c.lib.weft_{name} is the C function" if function else _numbers.did_you_mean(name, __dir__())
        raise AttributeError(f"weft has no {name}{way_out}")

    takes = {p["type"] for p in function["parameters"]}
    takes_graph = function["returns"] == "weft_value" and "weft_graph *" in takes
    is_optimizer = "const weft_optimizer_options *" in takes
    is_op = not is_optimizer and name != "assign"

    def wrapper(*given, **options):
        if is_op and given and isinstance(given[0], Tensor):
            return record(name, given, options)
        if _is_lazy_call(takes_graph, given, options):
            return Optimizer(name, **options).step(*given) if is_optimizer else _lazily(name, given, options)
        return call(function["name"], *given, **options)

    wrapper.__name__ = wrapper.__qualname__ = name
    parameters = ", ".join(f"{p['type']} {p['name']}".replace("* ", "*") for p in function["parameters"])
    returns = function["returns"] + ("" if function["returns"].endswith("*") else " ")
    wrapper.__doc__ = f"{returns}weft_{name}({parameters or 'void'})    <{function['header']}>"
    if filled(function):
        wrapper.__doc__ += f"; comes back, not handed over: {', '.join(filled(function))}"
    wrapper.__doc__ += "\n\n" + _frames.comment_of(name)
    _wrappers[name] = wrapper
    return wrapper


def __dir__():
    return sorted(set(__all__) | set(_capitals()) | {name[5:] for name, function in c.functions.items() if is_plain(function)})

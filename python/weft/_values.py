"""_values: what Python holds of the library: dims, values, handles, errors."""
import ctypes
import functools
import os
import threading
import weakref
from collections import namedtuple

import numpy

from . import _c as c
from ._numbers import DTYPES, is_number, scalar

Dim = namedtuple("Dim", "name size")
Dim.__module__ = "weft"
Dim.__doc__ = 'A named, sized direction of a tensor: Dim("batch", 32); a plain pair does as well.'

_INTEGERS = {name for name, dtype in DTYPES.items() if dtype.kind != "f"}
_STATUS = {number: name[5:].lower() for name, number in c.model["enums"]["weft_status"]["entries"].items()}

class Error(RuntimeError):
    """The library's sentence; .status says what kind of failure, as weft_status does: "usage", "io", "memory", ..."""

    __module__ = "weft"

    def __init__(self, status, message):
        super().__init__(message)
        self.status = _STATUS.get(status, str(status))

    def __reduce__(self):
        return _error_again, (type(self), self.args, self.__dict__)  # to another process, as multiprocessing does


def _error_again(kind, args, facts):
    made = kind.__new__(kind, *args)
    made.__dict__.update(facts)
    return made


_process = os.getpid()


_locks = weakref.WeakSet()


def new_lock():
    """A lock that a forked child finds free, whatever thread of its parent had it: that thread is not there."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _note_fork():
    global _process
    _process = os.getpid()
    for lock in _locks:
        lock._at_fork_reinit()


os.register_at_fork(after_in_child=_note_fork)


def _destroy(name, handle, needs, pid):
    """`needs` are the objects that must outlive the handle: they are let go of after it. A forked child leaves it to its parent."""
    if pid == os.getpid():
        getattr(c.lib, name)(ctypes.byref(handle))
    needs.clear()


def unmoved(kind=None):
    """What refuses to be pickled or copied."""

    def refuse(self):
        raise TypeError(f"a {kind or self._kind} is of this process, whose memory it has; another makes one of its own (tensors go, as arrays, and "
                        "weft.save keeps programs)")

    return refuse


class Handle:
    """A handle of the library, destroyed when Python has no more use for it, and at exit in the reverse order."""

    def _own(self, kind, handle, *needs):
        self._handle, self._kind, self._pid = handle, kind, os.getpid()
        needs = list(needs)
        self._end = weakref.finalize(self, _destroy, end_of(f"weft_{kind}"), handle, needs, self._pid)
        return needs

    __reduce__ = unmoved()

    @property
    def handle(self):
        """C's. What was closed, or made by the process that this one was forked from, is refused."""
        if not self._handle:
            raise Error(1, f"this {self._kind} is closed; make another")
        if self._pid != _process:
            raise Error(1, f"this {self._kind} is of the process that was forked, whose ranks are threads: a fork leaves them behind; make one here")
        return self._handle

    def close(self):
        """Gives its memory back now. What others need (a mesh, of its programs) stays until they are gone."""
        if self._end.alive and self._handle:
            self._end()
            if self._handle:
                raise Error(1, f"this {self._kind} is in use by others; close those first")


class Opened(Handle):
    """What a function opened that has no class of its own: a data set, checkpoints. It needs whatever it was used with."""

    def __init__(self, kind, handle):
        self.kind = kind
        self.needs = self._own(kind, handle)

    def __repr__(self):
        return f"<weft.{self.kind}>"


def end_of(kind):
    return next((kind + end for end in ("_destroy", "_close") if kind + end in c.functions), None)


def _call(name, *given):
    from ._call import call  # which makes values: the two know each other

    return call(name, *given)


def _binary(name, float_name=None, swapped=False):
    """An operator as an op, `name`; of a float value and a number `float_name`, where there is one that is made for it."""

    def operator(self, other):
        if not isinstance(other, Value) and not is_number(other):
            return self._strange(name, other)
        if float_name and not isinstance(other, Value) and self.dtype not in _INTEGERS:
            return _call("weft_" + float_name, self, other)
        return _call("weft_" + name, *((other, self) if swapped else (self, other)))

    return operator


def _quotient(swapped=False):
    """a / b, of floats: of integers it has a fraction, which an integer has not."""
    divide = _binary("div", swapped=swapped)

    def operator(self, other):
        if self.dtype in _INTEGERS and (isinstance(other, Value) or is_number(other)):
            raise TypeError(f"/: {self._called()} is {self.dtype}, and a quotient has a fraction, which no integer has; // rounds down, "
                            "weft.div cuts, and weft.cast gives a float")
        return divide(self, other)

    return operator


class Value:
    """One tensor of a graph. Operators, comparisons with == among them, are ops, by dim names; numbers may stand on either side.

    A number takes the value's dtype, which it has to fit: beside an integer 2.5 is refused, and so is 300 beside a u8, since no op
    of Weft's changes a dtype unasked (weft.cast does). Values are what they are in sets and dicts (by `is`, not by ==), and have
    no truth: weft.where chooses by one."""

    __array_ufunc__ = None  # numpy leaves operators with arrays to us

    def __init__(self, graph, raw):
        self.graph, self._raw = graph, raw

    @property
    def _c(self):
        """C's, of a graph that is there: one that was closed is refused, and so is one of the process that this was forked from."""
        if self.graph is not None:
            self.graph.handle
        return self._raw

    @functools.cached_property
    def dims(self):
        shape = c.lib.weft_shape_of(self._c).contents
        return tuple(Dim(shape.dims[d].name.decode(), shape.dims[d].size) for d in range(shape.n_dims))

    @functools.cached_property
    def dtype(self):
        return c.lib.weft_dtype_name(c.lib.weft_dtype_of(self._c)).decode()

    @functools.cached_property
    def array_kind(self):
        """Of arrays that hold it: shape, numpy's dtype, the library's number of the dtype."""
        halves = numpy.dtype("uint16") if self.dtype == "bf16" else DTYPES[self.dtype]
        return tuple(dim.size for dim in self.dims), halves, c.constants["WEFT_" + self.dtype.upper()]

    @property
    def name(self):
        return (c.lib.weft_name_of(self._c) or b"").decode()

    def __repr__(self):
        return f"<{self.name or 'value'} [{', '.join(f'{d.name}:{d.size}' for d in self.dims)}] {self.dtype}>"

    def _called(self):
        return self.name or "the value"

    def _strange(self, name, other):
        """Beside neither a value nor a number: Python says so itself, but of what might pass for numbers."""
        if hasattr(other, "__array__") or isinstance(other, (list, tuple, complex)):
            kind = f"an array of shape {other.shape}" if hasattr(other, "shape") else f"a {type(other).__name__}"
            raise TypeError(f"{name}: {self._called()} is a value of a program, whose dims have names, and the other is {kind}; make that an "
                            "input and write it there (graph.input, program.write)")
        return NotImplemented

    def __array__(self, *given, **options):
        raise TypeError(f"{self!r} is a value of a program, and no array: it has numbers after a run, which program.read gives")

    def __bool__(self):
        raise TypeError(f"{self!r} has no truth before it is run: choose by weft.where or weft.cond, look at what program.read gives, "
                        "and ask whether two are one value by `is`")

    __hash__ = object.__hash__
    __add__, __radd__ = _binary("add", "shift"), _binary("add", "shift", swapped=True)
    __mul__, __rmul__ = _binary("mul", "scale"), _binary("mul", "scale", swapped=True)
    __rsub__ = _binary("sub", swapped=True)
    __truediv__, __rtruediv__ = _quotient(), _quotient(swapped=True)
    __floordiv__, __rfloordiv__ = _binary("floor_div"), _binary("floor_div", swapped=True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __lt__, __le__, __gt__, __ge__ = (_binary(name) for name in ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")

    def __sub__(self, other):
        if is_number(other) and self.dtype not in _INTEGERS:
            return _call("weft_shift", self, -scalar(other, self.dtype, f"sub: {self._called()}"))
        return _binary("sub")(self, other)

    def __neg__(self):
        return _call("weft_neg", self)

    def __abs__(self):
        return _call("weft_abs", self)

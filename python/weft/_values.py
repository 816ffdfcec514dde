"""_values: what Python holds of the library: dims, values, handles, errors."""
import ctypes
import weakref
from collections import namedtuple

import numpy

from . import _c as c

Dim = namedtuple("Dim", "name size")
Dim.__module__ = "weft"
Dim.__doc__ = 'A named, sized direction of a tensor: Dim("batch", 32); a plain pair does as well.'

# What arrays are of; numpy has no bf16, whose numbers come and go as float32.
DTYPES = {"f32": numpy.dtype("float32"), "f64": numpy.dtype("float64"), "i32": numpy.dtype("int32"),
          "bf16": numpy.dtype("float32"), "f16": numpy.dtype("float16"), "i64": numpy.dtype("int64"),
          "u8": numpy.dtype("uint8")}
_STATUS = {number: name[5:].lower() for name, number in c.model["enums"]["weft_status"]["entries"].items()}

class Error(RuntimeError):
    """The library's sentence; .status says what kind of failure, as weft_status does: "usage", "io", "memory", ..."""

    __module__ = "weft"

    def __init__(self, status, message):
        super().__init__(message)
        self.status = _STATUS.get(status, str(status))


def _destroy(name, handle, needs):
    """`needs` are the objects that must outlive the handle: they are let go of after it."""
    getattr(c.lib, name)(ctypes.byref(handle))


class Handle:
    """A handle of the library, destroyed when Python has no more use for it, and at exit in the reverse order."""

    def _own(self, kind, handle, *needs):
        self.handle = handle
        needs = list(needs)
        weakref.finalize(self, _destroy, end_of(f"weft_{kind}"), handle, needs)
        return needs


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
            other = _call("weft_constant", self.graph, self.dtype, (), float(other))
        if not isinstance(other, Value):
            return NotImplemented
        return _call(name, other, self) if swapped else _call(name, self, other)

    def __add__(self, other):
        return _call("weft_shift", self, other) if isinstance(other, (int, float)) else self._with("weft_add", other)

    def __mul__(self, other):
        return _call("weft_scale", self, other) if isinstance(other, (int, float)) else self._with("weft_mul", other)

    def __sub__(self, other):
        return _call("weft_shift", self, -other) if isinstance(other, (int, float)) else self._with("weft_sub", other)

    def __truediv__(self, other):
        return self._with("weft_div", other)

    def __rsub__(self, other):
        return self._with("weft_sub", other, swapped=True)

    def __rtruediv__(self, other):
        return self._with("weft_div", other, swapped=True)

    def __neg__(self):
        return _call("weft_neg", self)

    def __lt__(self, other):
        return self._with("weft_less", other)

    def __le__(self, other):
        return self._with("weft_less_equal", other)

    def __gt__(self, other):
        return self._with("weft_greater", other)

    def __ge__(self, other):
        return self._with("weft_greater_equal", other)

    __radd__, __rmul__ = __add__, __mul__

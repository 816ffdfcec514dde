"""_tensor: lazy tensors: what is written down as Python goes, and computed once somebody looks.

    x = weft.tensor(array, "batch pixel")
    h = weft.relu(x @ w + b)            recorded; x @ w contracts pixel, x's last dim, which both have
    print(h.mean())                     computed here, by one program that the next trip of the loop finds again
"""
import math
import sys
import weakref

import numpy

from . import _c as c, _numbers, _record, _show
from ._numbers import DTYPES, is_number
from ._record import Node, Type, dims_named, freeze, hidden as _hidden, infer, infos, part, place_of_user
from ._session import Session, data_of
from ._ufuncs import of_numpy
from ._values import Dim, Value

FLOATS = ("f32", "f64", "bf16", "f16")
_getframe, _ref = sys._getframe, weakref.ref


def emit(info, operands, place):
    """A tensor of a node that was recorded, or what the op gives of several."""
    session = Session.current or Session.now()
    needs = False
    for operand in operands:
        if operand.needs:
            needs = True
    if info.variables:
        states = session.states_of.get(info)
        if states is None:
            states = session.states_of[info] = [session.state(name, of_type, made_by=info) for name, of_type in info.variables.items()]
        operands, needs = (*operands, *[state.node for state in states]), True
    if info.shape is not None:
        base = Node(info, operands, info.types[0], place, needs, session)
        outs = []
        for at, of_type in enumerate(info.types):
            outs.append(_handed(Node(part(at), (base,), of_type, place, needs, session)))
        return _record.fill(info.shape, outs)
    return _handed(Node(info, operands, info.types[0], place, needs, session))


def _handed(node):
    tensor = Tensor.__new__(Tensor)
    tensor._node = node
    node.ref = _ref(tensor)
    node.session.pend(node)
    return tensor


_products = {}  # kinds of nodes of a @ b, by both types


def _mapped(name, given, options):
    """An op inside vmap: dims that it is told get those which are hidden, and the result has them."""
    operands = []
    for item in (*given, *options.values()):
        freeze(item, operands)
    mine = [dim for dim in _hidden if any(dim in node.type.dims for node in operands)]
    wanted = [p for p in c.functions["weft_" + name]["parameters"] if p["type"] != "weft_graph *"]
    known = [dim for node in operands for dim in node.type.dims]
    more = lambda parameter, item: ([*mine, *dims_named(item, known, name)] if parameter["type"] == "weft_shape" else item)
    given = [more(parameter, item) for parameter, item in zip(wanted, given)]
    made = _recorded(name, given, options)
    for one in made if isinstance(made, (tuple, list)) else [made]:
        if isinstance(one, Tensor) and any(dim not in one._weft_node.type.dims for dim in mine):
            raise ValueError(f"vmap: {name} gives {one._weft_node.type}, which has lost {mine[0].name}; reduce over dims by name, as .sum(\"feature\")")
    return made


def record(name, given, options):
    """An op by its name, of lazy tensors among its arguments."""
    return _mapped(name, given, options) if _hidden else _recorded(name, given, options)


def _recorded(name, given, options):
    operands = []
    key = [name]
    for item in given:
        node = getattr(item, "_weft_node", None)
        if node is not None:
            operands.append(node)
            key.append(node.type)
        else:
            key.append(freeze(item, operands))
    for word, item in options.items():
        key.append((word, freeze(item, operands)))
    key = tuple(key)
    info = infos.get(key) or infer(key, name, given, options, operands)
    if not info.types:
        return info.constant
    return emit(info, tuple(operands), place_of_user())


def is_lazy(given):
    """Whether a lazy tensor is among arguments."""
    for item in given:
        if getattr(item, "_weft_node", None) is not None:
            return True
        if isinstance(item, (list, tuple)) and is_lazy(item) or isinstance(item, dict) and is_lazy(item.values()):
            return True
    return False


def _binary(name, float_name=None, swapped=False):
    """An operator; of a float tensor and a number as `float_name`, where there is one."""
    numbers = {}  # kinds of nodes by number and type

    def operator(self, other, depth=1):  # depth: how many frames up the user's is
        mine = self._weft_node
        if isinstance(other, Tensor):
            its = other._weft_node
            operands = (its, mine) if swapped else (mine, its)
            key = (name, operands[0].type, operands[1].type)
            info = infos.get(key) or infer(key, name, (other, self) if swapped else (self, other), {}, list(operands))
        elif is_number(other):
            other = other[()] if type(other) is numpy.ndarray else other
            operands = (mine,)
            key = (mine.type, type(other), float(other).hex() if isinstance(other, float) else other)
            info = numbers.get(key)
            if info is None:
                info = numbers[key] = self._beside_number(name, float_name, other, swapped)
        else:
            return self._strange(name, other)
        frame = _getframe(depth)
        return emit(info, operands, (frame.f_code, frame.f_lineno))

    return operator


def named(name, *options, **fixed):
    """A method that is the op of that name."""

    def method(self, *given, **more):
        return record(name, (self, *given), {**fixed, **more})

    method.__name__ = name
    method.__doc__ = f"weft.{name}(self, ...)"
    return method


def _reduction(name, called=None):
    called = called or name

    def method(self, *dims, **numpys):
        """Over the dims of these names; over all, where none is given."""
        said = [word for word, item in numpys.items() if item is not None]  # numpy.sum(tensor) says axis=None, dtype=None, out=None
        if said or any(item is None for item in dims):
            raise TypeError(f"{called}: {said[0] if said else 'None'} is none of a tensor's; dims are named, as .{called}(\"batch\")")
        gone = [dim.name for dim in self._over(called, dims)]
        return record(name, ([dim for dim in self.dims if dim.name not in gone], self), {})

    method.__name__ = called
    return method


class Tensor:
    """A lazy tensor. Operators and methods are ops by dim names; numpy reads it (numpy.asarray, .numpy(), print), and that computes it.

    All processes read alike, since each has a part: read on all, print on one."""

    __slots__ = ("_node", "__weakref__")
    __module__ = "weft"
    __array_ufunc__ = of_numpy

    @property
    def _weft_node(self):
        return self._node

    @property
    def dims(self):
        dims = self._weft_node.type.dims
        return tuple(dim for dim in dims if dim not in _hidden) if _hidden else dims

    @property
    def dtype(self):
        return self._weft_node.type.dtype

    @property
    def shape(self):
        return tuple(dim.size for dim in self.dims)

    @property
    def ndim(self):
        return len(self.dims)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def spec(self):
        """The layout's rules that hold for its dims: where it lives."""
        return _show.spec_of(self._weft_node.session, self.dims)

    def __getattr__(self, name):
        near = "" if name.startswith("_") else _numbers.did_you_mean(name, [word for word in dir(type(self)) if word[0] != "_"])
        raise AttributeError(f"a tensor has no {name}{near}")

    # ---- numbers

    def _data(self):
        return data_of(self._weft_node)

    def numpy(self):
        """Its numbers, as an array of its own. All processes call it."""
        return numpy.array(self._data())

    def __array__(self, dtype=None, copy=None):
        data = self._data()
        return numpy.array(data, dtype=dtype) if copy is not False else numpy.asarray(data, dtype=dtype)

    def __dlpack__(self, **options):
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # the host's memory: all processes have the whole

    def item(self):
        if self.size != 1:
            raise ValueError(f"item: the tensor is {self._weft_node.type}; one of a single element is wanted, as .mean() gives")
        return self._data().item()

    def tolist(self):
        return self._data().tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype in FLOATS:
            raise TypeError(f"a tensor of {self.dtype} is no index")
        return int(self.item())

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of {self._weft_node.type} is that of many elements; use weft.any or weft.all")
        return bool(self.item())

    def __len__(self):
        if not self.dims:
            raise TypeError("a tensor without dims has no length")
        return self.dims[0].size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self):
        return _show.text_of(self)

    def _repr_html_(self):
        return _show.html_of(self)

    def __reduce__(self):
        return tensor, (self.numpy(), self.dims, self.dtype)

    def __deepcopy__(self, memo):
        return self

    # ---- operators

    def _beside_number(self, name, float_name, other, swapped):
        if float_name and self.dtype in FLOATS:
            given = (self, -other if float_name == "shift" and name == "sub" else other)
            name = float_name
        else:
            given = (other, self) if swapped else (self, other)
        operands = []
        key = (name, "beside", *[freeze(item, operands) for item in given])
        return infos.get(key) or infer(key, name, given, {}, operands)

    def _strange(self, name, other):
        if isinstance(other, Value):
            raise TypeError(f"{name}: a lazy tensor and {other!r}, a value of a graph: give the graph an input, and write the tensor there")
        if hasattr(other, "__array__") or isinstance(other, (list, tuple, complex)):
            kind = f"an array of shape {other.shape}" if hasattr(other, "shape") else f"a {type(other).__name__}"
            raise TypeError(f"{name}: the tensor has {', '.join(d.name for d in self.dims) or 'no dims'}, and the other is {kind}, whose dims have "
                            "no names; give it names: weft.tensor(array, \"batch pixel\")")
        return NotImplemented

    __hash__ = object.__hash__
    __add__, __radd__ = _binary("add", "shift"), _binary("add", "shift", swapped=True)
    __mul__, __rmul__ = _binary("mul", "scale"), _binary("mul", "scale", swapped=True)
    __sub__, __rsub__ = _binary("sub", "shift"), _binary("sub", swapped=True)
    _div, _rdiv = _binary("div"), _binary("div", swapped=True)
    __floordiv__, __rfloordiv__ = _binary("floor_div"), _binary("floor_div", swapped=True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __lt__, __le__, __gt__, __ge__ = (_binary(name) for name in ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")

    def __truediv__(self, other):
        return self._quotient(other)._div(other, 2) if isinstance(other, Tensor) or is_number(other) else self._strange("div", other)

    def __rtruediv__(self, other, depth=1):
        return self._quotient(other)._rdiv(other, depth + 1) if is_number(other) else self._strange("div", other)

    def _quotient(self, other):
        if self.dtype not in FLOATS:
            raise TypeError(f"/: the tensor is {self.dtype}, and a quotient has a fraction, which no integer has; // rounds down, and .cast(\"f32\") "
                            "gives a float")
        return self

    def __neg__(self):
        return record("neg", (self,), {})

    def __abs__(self):
        return record("abs", (self,), {})

    def __matmul__(self, other):
        if not isinstance(other, Tensor):
            return self._strange("@", other)
        operands = (self._weft_node, other._weft_node)
        types = operands[0].type, operands[1].type
        if types in _products and not _hidden:
            frame = _getframe(1)
            return emit(_products[types], operands, (frame.f_code, frame.f_lineno))
        mine, its = self.dims, other.dims
        if not mine or mine[-1].name not in [dim.name for dim in its]:
            last = mine[-1].name if mine else "no dim"
            raise ValueError(f"@: the left has {last} last, of {self._weft_node.type}, and the right is {other._weft_node.type}; both have to have the "
                             "dim that is summed over. weft.einsum sums over any, and .rename(\"old\", \"new\") gives it another name")
        names = [dim.name for dim in mine]
        out = [*mine[:-1], *[dim for dim in its if dim.name not in names]]
        made = record("einsum", (out, self, other), {})
        if not _hidden:
            _products[types] = made._weft_node.info
        return made

    __rmatmul__ = lambda self, other, depth=1: self._strange("@", other)

    # ---- by names of dims

    def _over(self, what, dims):
        dims = [part for dim in dims for part in (dim.split() if isinstance(dim, str) else [dim])]
        return dims_named(dims, self.dims, what) if dims else self.dims

    sum, max, min, prod, mean = (_reduction(*names.split()) for names in ("sum", "max", "min", "prod", "mean_over mean"))
    all, any = _reduction("all"), _reduction("any")
    exp, log, sqrt, tanh, relu, square, cast, abs = (named(name) for name in ("exp", "log", "sqrt", "tanh", "relu", "square", "cast", "abs"))
    softmax, log_softmax, argmax, argmin = (named(name) for name in ("softmax", "log_softmax", "argmax", "argmin"))

    def cumsum(self, dim, exclusive=False, reverse=False):
        return record("cumsum", (self, dim, exclusive, reverse), {})

    @property
    def T(self):
        """Its dims in the reverse order."""
        return record("transpose", (self, list(reversed(self.dims))), {})

    def transpose(self, dims):
        """Its dims in this order: "pixel batch"."""
        return record("transpose", (self, dims), {})

    def reshape(self, dims):
        return record("reshape", (self, dims), {})

    def rename(self, old, new):
        dim = dims_named([old], self.dims, "rename")[0]
        return record("rename", (self, dim, Dim(new, dim.size)), {})

    def _sliced(self, dim, picked):
        if isinstance(picked, slice):
            begin, end, step = picked.indices(dim.size)
            if step < 1 or end <= begin:
                raise IndexError(f"[]: {picked} of {dim.name}:{dim.size} has no elements, or a step that is not positive; weft.flip turns a dim round")
            to = Dim(dim.name, -(-(end - begin) // step))
            if to == dim:
                return self
            return record("slice", (self, dim, begin, to), {}) if step == 1 else record("slice_step", (self, dim, begin, step, to), {})
        if isinstance(picked, Tensor):
            both = [one.name for one in picked.dims if one.name != dim.name and one in self.dims]
            if both:
                raise IndexError(f"[]: ids along {dim.name} have {both[0]}, and so has the tensor; weft.where chooses by a mask, weft.pick by such ids")
            return record("gather", (self, picked, dim), {})
        try:
            at = picked.__index__()
        except (AttributeError, TypeError):
            if hasattr(picked, "__array__"):
                picked = f"an array of shape {numpy.shape(picked)}"
            raise TypeError(f"[]: {picked} is no place along {dim.name}; a whole number, a slice, or ids in an i32 tensor; by a mask "
                            "weft.where chooses") from None
        if not -dim.size <= at < dim.size:
            raise IndexError(f"[]: {at} is past {dim.name}:{dim.size}")
        return record("unstack", (self, dim, at % dim.size), {})

    def __getitem__(self, given):
        """By place, x[0, 1:3], x[..., 0], or by names, x[{"batch": 0}]."""
        if isinstance(given, dict):
            pairs = [(dims_named([name], self.dims, "[]")[0], picked) for name, picked in given.items()]
        else:
            given = list(given) if isinstance(given, tuple) else [given]
            if Ellipsis in [item if item is Ellipsis else None for item in given]:
                at = next(i for i, item in enumerate(given) if item is Ellipsis)
                given[at:at + 1] = [slice(None)] * (len(self.dims) - len(given) + 1)
            if len(given) > len(self.dims):
                raise IndexError(f"[]: {len(given)} places are given, and the tensor is {self._weft_node.type}")
            pairs = zip(self.dims, given)
        made = self
        for dim, picked in list(pairs):
            made = made._sliced(dim, picked)
        return made

    def __setitem__(self, given, value):
        raise TypeError("a tensor is not written in place; weft.where, weft.concat and weft.scatter_add make another, and a variable has .assign")

    # ---- gradients

    def detach(self):
        """The same numbers, through which no gradient goes."""
        return record("stop_gradient", (self,), {})

    def backward(self):
        """Its gradients with respect to all variables it depends on go to their .grad, where they are added to what is there."""
        from ._variable import backward  # which has tensors itself

        backward(self)

    @property
    def grad(self):
        return None


def tensor(data, dims="", dtype=None, grad=False):
    """tensor(array, "batch pixel"): a lazy tensor of an array, of lists, of a number, or of what DLPack knows; its dims are named, in
    order. dtype: the array's; f32 of Python's floats, i32 of its integers. grad: it stays differentiable after it was read. The array is
    copied, unless nobody can write it (array.flags.writeable = False)."""
    if type(data) is numpy.ndarray and type(dims) is str and (dtype is None or type(dtype) is str):
        of_type = _held_as.get((data.shape, data.dtype, dims, dtype))
        if of_type is not None:
            return _of_array(data, of_type, grad, not _numbers.is_fixed(data))
    return made_of(data, dims, dtype, grad, True)


_held_as = {}  # types of tensors that hold an array as it is, by what tensor() was told


def _of_array(array, of_type, grad, may_change=False):
    """may_change: the array is copied, into the program that will have it, if that is known."""
    place, session = place_of_user(), Session.current or Session.now()
    made = Tensor.__new__(Tensor)
    made._node = node = Node(of_type.leaf, (), of_type, place, bool(grad), session)
    node.ref = _ref(made)
    near = session.inputs.get((id(place[0]), place[1], of_type)) if may_change else None
    if near is None or not near.take(node, array):
        node.data = array.copy() if may_change else array
        node.data.setflags(write=False)
    return made


def made_of(data, dims, dtype=None, grad=False, may_change=False):
    """may_change: somebody else has the array, which is read later: so it is copied."""
    said = dtype
    if isinstance(data, Tensor):
        data = data._data()
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        data = numpy.from_dlpack(data)
    if isinstance(data, Value):
        raise TypeError(f"tensor: {data!r} is a value of a graph, and has no numbers before a program is run")
    if not hasattr(data, "dtype") and not isinstance(data, numpy.ma.MaskedArray):
        array = numpy.asarray(data)
        dtype = dtype or ("f32" if array.dtype.kind == "f" else "i32")
    else:
        array = numpy.asarray(data) if not isinstance(data, numpy.ma.MaskedArray) else data
        if array.dtype.kind == "b" and dtype is None:
            dtype = "i32"
    if dtype is None:
        dtype = next((name for name, its in DTYPES.items() if its == array.dtype.newbyteorder("=")), None)
        if dtype is None:
            raise TypeError(f"tensor: the array is {array.dtype}; Weft has {', '.join(DTYPES)}: say which, as dtype=\"f32\"")
    if not isinstance(dims, (str, tuple, list)):
        raise TypeError(f"tensor: dims are {dims!r}; give their names, as weft.tensor(array, \"batch pixel\")")
    names = dims.replace(",", " ").split() if isinstance(dims, str) else [dims] if isinstance(dims, Dim) else list(dims)
    names = [name.name if isinstance(name, Dim) else name for name in names]
    if len(names) != array.ndim:
        raise ValueError(f"tensor: the array has the shape {array.shape} and {len(names)} dims are named, {' '.join(map(str, names)) or 'none'}; name "
                         "each, as weft.tensor(array, \"batch pixel\")")
    given = dims_named([name if not isinstance(name, str) or ":" in name else f"{name}:{size}" for name, size in zip(names, array.shape)],
                       (), "tensor")
    again = [dim.name for dim in given if [one.name for one in given].count(dim.name) > 1]
    if again:
        raise ValueError(f"tensor: {again[0]} is there twice, of the shape {array.shape}; each dim has a name of its own")
    from . import _dtype_name

    dtype = _dtype_name(dtype)
    array = _numbers.array_of(data if not isinstance(data, Tensor) else array, dtype, tuple(dim.size for dim in given), "tensor: it")
    if may_change and not isinstance(data, (list, tuple)) and numpy.may_share_memory(array, data) and not (type(data) is numpy.ndarray and _numbers.is_fixed(data)):
        array = numpy.array(array)
    of_type = Type.of(given, dtype)
    if type(data) is numpy.ndarray and type(dims) is str and data.dtype == DTYPES[dtype] and dtype != "bf16":
        _held_as[data.shape, data.dtype, dims, said] = of_type
    return _of_array(array.reshape([dim.size for dim in given]), of_type, grad)

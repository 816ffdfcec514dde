"""_numbers: Python's and numpy's numbers as C's. What does not fit is refused, with where it stands, both facts and the way out;
C itself would wrap round, cut or drop it without a word. Rounding to fewer digits is no such thing.

    fit(array, "i32", "write: w")           an array of what C has; the first element that does not fit is named
    number(3, ctypes.c_int, "roll: by")     for a parameter or a field
"""
import ctypes
import os

import numpy

from . import _c as c

# What arrays are of; numpy has no bf16, whose numbers come and go as float32.
DTYPES = {"f32": numpy.dtype("float32"), "f64": numpy.dtype("float64"), "i32": numpy.dtype("int32"),
          "bf16": numpy.dtype("float32"), "f16": numpy.dtype("float16"), "i64": numpy.dtype("int64"),
          "u8": numpy.dtype("uint8")}
_KINDS = {"c": "complex", "U": "a text", "S": "bytes", "M": "a date", "m": "a time", "V": "a record", "O": "an object"}


class Misfit(ValueError, TypeError):
    """A number that C's type has not: of numpy's casting rules a TypeError, of Python a ValueError."""

    __module__ = "weft"


def did_you_mean(name, names):
    """"; did you mean x?" by the library's own rule; "" where none is near."""
    names = [each.encode() for each in names]
    near = c.lib.weft_nearest(str(name).encode(), (ctypes.c_char_p * max(1, len(names)))(*names), len(names))
    return f"; did you mean {near.decode()}?" if near else ""


def is_fixed(array):
    """Whether nobody can write it, nor what it is a part of; in C's order."""
    if not array.flags.c_contiguous:
        return False
    while not array.flags.writeable:
        if array.base is None:
            return True
        if type(array.base) is not numpy.ndarray:
            return False
        array = array.base
    return False


def is_number(given):
    """A real number, of Python or numpy."""
    given = given[()] if isinstance(given, numpy.ndarray) and given.ndim == 0 else given
    return isinstance(given, (bool, int, float, numpy.bool_, numpy.integer, numpy.floating))


# ---- arrays -------------------------------------------------------------------------------------------------------------


def _index(bad):
    return [int(i) for i in numpy.unravel_index(int(numpy.argmax(bad)), bad.shape)]


def _named(at):
    return f"element {list(at)} is" if len(at) else "the number is"


def _cut(given):
    """As it stands in a sentence."""
    said = str(given)
    return said if len(said) <= 40 else f"{said[:20]}... of {len(said)} digits"


def _refuse(array, bad, dtype, what, at, why):
    """Of the first element that is bad, of the array or of element `at` of one. `why` says what is wrong with it."""
    here = _index(bad)
    raise Misfit(f"{what} is {dtype}, and {_named(here or at)} {_cut(array[tuple(here)])}, {why}")


def _to_integers(array, dtype, what, at):
    limits = numpy.iinfo(DTYPES[dtype])
    past = f"which is past its range, {limits.min} to {limits.max}; take a dtype that has it"
    if array.dtype.kind == "f":
        wide = array if array.dtype.itemsize >= 8 else array.astype("float64")
        with numpy.errstate(invalid="ignore"):
            for bad, why in ((~numpy.isfinite(wide), "which no integer is; replace it before"),
                             ((wide < limits.min) | (wide >= limits.max + 1.0), past),
                             (wide != numpy.trunc(wide), "which has a fraction; round it, or take a float dtype, by weft.cast")):
                if bad.any():
                    _refuse(array, bad, dtype, what, at, why)
    elif array.size:  # in Python's integers: numpy would compare 64 bits with and without a sign as floats
        if int(array.min()) < limits.min:
            _refuse(array, array < limits.min, dtype, what, at, past)
        if int(array.max()) > limits.max:
            _refuse(array, array > limits.max, dtype, what, at, past)
    return array.astype(DTYPES[dtype], copy=False)


_ONE, _HALF = numpy.uint32(1), numpy.uint32(16)  # numpy takes a plain 1 for 64 bits where the other is one number


def to_bf16(array):
    """Rounded once, to the nearest, ties to even: the upper halves of float32, as uint16."""
    array = array if array.dtype.kind == "f" else array.astype("float64")
    with numpy.errstate(over="ignore"):
        near = array.astype(numpy.float32)
    # What float32 had to round is cut instead, and its last bit set: so the second rounding goes as one of the number itself.
    is_cut = numpy.isfinite(array) & (near != array)
    low = numpy.where(numpy.abs(near) > numpy.abs(array), numpy.nextafter(near, numpy.float32(0)), near)
    bits = numpy.where(is_cut, low.view(numpy.uint32) | _ONE, near.view(numpy.uint32))
    rounded = bits + numpy.uint32(0x7FFF) + (bits >> _HALF & _ONE)
    return numpy.asarray((numpy.where(numpy.isnan(array), bits | numpy.uint32(0x400000), rounded) >> _HALF).astype(numpy.uint16))


def from_bf16(halves):
    return numpy.asarray((halves.astype(numpy.uint32) << _HALF).view(numpy.float32))  # of one number numpy has made no array


def _to_floats(array, dtype, what, at):
    with numpy.errstate(over="ignore"):
        made = from_bf16(to_bf16(array)) if dtype == "bf16" else array.astype(DTYPES[dtype], copy=False)
    if array.dtype != made.dtype or dtype == "bf16":
        bad = numpy.isinf(made) & numpy.isfinite(array)
        if bad.any():
            _refuse(array, bad, dtype, what, at, "which would be infinite there; scale it, or take a dtype of a wider range")
    return made


def _of_objects(array, dtype, what):
    """Whole numbers of any size, and what numpy found no dtype for: one by one."""
    made = numpy.empty(array.shape, DTYPES[dtype])
    for at in numpy.ndindex(array.shape):
        if not is_number(array[at]):
            raise TypeError(f"{what} is {dtype}, and {_named(at)} {array[at]!r}, which is no real number; give numbers alone")
        given = numpy.asarray(array[at])
        if given.dtype.kind == "O":  # past all of numpy's integers
            given = numpy.asarray(_long_float(array, at, dtype, what))
        made[at] = fit(given, dtype, what, at)
    return made


def _long_float(array, at, dtype, what):
    """A whole number of more than 64 bits, which floats alone have, if any."""
    try:
        if DTYPES[dtype].kind == "f":
            return float(array[at])
    except OverflowError:
        pass
    raise Misfit(f"{what} is {dtype}, and {_named(at)} {_cut(array[at])}, which is past its range; take a dtype that has it")


def fit(array, dtype, what, at=()):
    """The array in DTYPES[dtype], each number the same, or rounded where a float has fewer digits; itself, where it is so already."""
    kind = array.dtype.kind
    if array.dtype == DTYPES[dtype] and dtype != "bf16":
        return array
    if kind == "O":
        return _of_objects(array, dtype, what)
    if kind not in "biuf":
        raise TypeError(f"{what} is {dtype}, and was given {_KINDS.get(kind, array.dtype)} ({array.dtype}); give real numbers")
    if DTYPES[dtype].kind == "f":
        return _to_floats(array, dtype, what, at)
    return _to_integers(array, dtype, what, at)


def _check_unmasked(data, what):
    """numpy would drop the mask of a masked array, in a list too."""
    if isinstance(data, numpy.ma.MaskedArray):
        bad = numpy.ma.getmaskarray(data)
        if bad.any():
            at = _index(bad)
            where = f"element {at} is masked" if at else "it is masked"
            raise ValueError(f"{what} was given a masked array: {where}, and a tensor has no mask; .filled(number) gives it one")
    elif isinstance(data, (list, tuple)) and data and not is_number(data[0]):
        for item in data:
            _check_unmasked(item, what)
    elif isinstance(data, (list, tuple)) and any(item is numpy.ma.masked for item in data):
        raise ValueError(f"{what} was given a list that has numpy.ma.masked in it; a tensor has no mask")


def array_of(data, dtype, shape, what):
    """What is to be written: of that shape, in DTYPES[dtype]. It may be the caller's own array."""
    _check_unmasked(data, what)
    try:
        array = numpy.asarray(data)
        if isinstance(data, (list, tuple)) and array.dtype.kind == "f" and DTYPES[dtype].kind != "f":
            array = numpy.asarray(data, dtype=object)  # beside a fraction numpy rounds long integers
    except ValueError:
        raise ValueError(f"{what} was given lists of different lengths; it has the shape {shape}") from None
    if array.shape != shape:
        raise ValueError(f"{what} was given an array of shape {array.shape}; it has the shape {shape}")
    return numpy.ascontiguousarray(fit(array, dtype, what))


# ---- numbers of parameters and fields -----------------------------------------------------------------------------------


def scalar(given, dtype, what):
    """A number beside a value of this dtype, as Python has it: an int for integers, a float for floats."""
    given = numpy.asarray(given)
    made = fit(given, dtype, what)[()]
    return float(given[()]) if DTYPES[dtype].kind == "f" else int(made)


def _whole(given, kind, what):
    try:
        made = given.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{what} is {given!r}; it is a whole number") from None
    bits, is_signed = 8 * ctypes.sizeof(kind), kind(-1).value < 0
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if not low <= made <= high:
        raise ValueError(f"{what} is {made}; it is a whole number from {low} to {high}")
    return made


def _flag(given, kind, what):
    if isinstance(given, (bool, numpy.bool_)) or isinstance(given, (int, numpy.integer)) and given in (0, 1):
        return bool(given)
    raise TypeError(f"{what} is {given!r}; it is True or False")


def _real(given, kind, what):
    if not is_number(given):
        raise TypeError(f"{what} is {given!r}; it is a number")
    given = given[()] if isinstance(given, numpy.ndarray) else given
    try:
        made = float(given)
    except OverflowError:
        made = float("inf")
    exact = made == given if isinstance(given, (int, numpy.integer)) else True
    if not exact:
        raise ValueError(f"{what} is {given}, of which a double has no more than the first 53 bits; give one that it has")
    if kind is ctypes.c_float and abs(made) != float("inf") and abs(ctypes.c_float(made).value) == float("inf"):
        raise ValueError(f"{what} is {given}; a float has no such number")
    return made


_BY_KIND = {ctypes.c_bool: _flag, ctypes.c_float: _real, ctypes.c_double: _real}


def number(given, kind, what):
    """For C's `kind`, of ctypes."""
    return _BY_KIND.get(kind, _whole)(given, kind, what)


def text(given, what):
    """Bytes for C, which knows no text with a zero in it."""
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is {given!r}; it is a text")
    made = os.fsencode(given)
    if b"\0" in made:
        raise ValueError(f"{what} is {given!r}, in which C would stop at the zero; leave that out")
    return made

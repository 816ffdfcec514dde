"""_ufuncs: numpy's functions on lazy tensors: operators with an array or a number of numpy's on the left are the tensor's own; any
other is refused, with what is there instead."""
from . import _c as c

_SWAPPED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "true_divide": "__rtruediv__",
            "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "matmul": "__rmatmul__", "equal": "__eq__",
            "not_equal": "__ne__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__"}
_OURS = {"absolute": "abs", "negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div", "remainder": "mod", "power": "pow"}


def of_numpy(self, ufunc, method, *inputs, **options):
    """Tensor.__array_ufunc__."""
    name = ufunc.__name__
    if method == "__call__" and not options and name in _SWAPPED and inputs[0] is not self:
        return getattr(self, _SWAPPED[name])(inputs[0], 2)
    ours = _OURS.get(name, name)
    instead = f"weft.{ours} is the op, and " if "weft_" + ours in c.functions else ""
    raise TypeError(f"numpy.{name} computes with arrays, and it was given a lazy tensor: {instead}.numpy() makes an array of a tensor")

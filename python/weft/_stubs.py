"""_stubs: type stubs from the headers, for editors: names of parameters, options, comments.

    python3 _stubs.py ROOT > __init__.pyi       a source tree, or a prefix; nothing but Python itself is needed
"""
import keyword
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _headers  # noqa: E402: beside this file, without numpy or the library

_KINDS = {"weft_value": "Tensor | Value", "weft_dim": "Dim | tuple[str, int] | str", "weft_shape": "list[Dim] | str", "weft_dtype": "str",
          "bool": "bool", "double": "float", "float": "float", "char *": "str", "weft_graph *": "Graph", "weft_mesh *": "Mesh",
          "weft_program *": "Program", "weft_values": "list"}
_HEAD = '''"""Made from the headers by _stubs.py."""
from typing import Any, NamedTuple
from ._module import Batches, Dataset, Layer, Module, Optimizer, Parameter
from ._session import Recompiled, Session
from ._tensor import Tensor, tensor
from ._variable import Tape, VariableTensor, grad, variable as Variable
from ._trace import jit, scan, vmap, while_loop
from ._values import Error, Value
from . import _c as c, data

class Dim(NamedTuple):
    name: str
    size: int

class Mesh:
    def __init__(self, text: str = "", plan: bool = False) -> None: ...
    axes: dict[str, int]
    is_root: bool
    def close(self) -> None: ...

class Layout:
    def __init__(self, text: str = "", zero: int = 0, over: str = "batch") -> None: ...

class Graph:
    def __init__(self, seed: int = 0) -> None: ...
    def input(self, name: str, dims: Any, dtype: str = "f32") -> Value: ...
    def variable(self, name: str, dims: Any, initial: Any = 0.0, dtype: str = "f32") -> Value: ...
    def constant(self, value: float, dims: Any = (), dtype: str = "f32") -> Value: ...
    def find(self, name: str) -> Value: ...

class Program:
    def __init__(self, mesh: Mesh, layout: Any, values: Any, **options: Any) -> None: ...
    def write(self, value: Any, data: Any) -> None: ...
    def read(self, value: Any) -> Any: ...
    def run(self, times: int = 1) -> None: ...
    def find(self, name: str) -> Value: ...
    def plan(self) -> dict: ...

def session(mesh: str = "", layout: str = "", **options: Any) -> Session: ...
def gradients(of: Value, with_respect_to: list, zeros_allowed: bool = False) -> list: ...
def trainable(of: Value) -> list: ...
def custom_gradient(in_: list, out: Value, rule: Any) -> Value: ...
def samples(fields: list, n_samples: int, read: Any, **options: Any) -> Any: ...
def version() -> str: ...
'''
_OWN = ("gradients", "custom_gradient", "version")


def _plain(text):
    return " ".join(text.replace("const", " ").replace("*", " * ").split())


def _parameter(described):
    name, kind = described["name"] or "given", _plain(described["type"])
    name += "_" if keyword.iskeyword(name) else ""
    return f"{name}: {_KINDS.get(kind, 'int' if kind.startswith(('int', 'uint', 'size_t')) else 'Any')}"


def _fields(model, parameters):
    """An options struct's fields, as keywords."""
    for described in parameters:
        if described["name"] == "options":
            return model["structs"].get(_plain(described["type"]).rstrip("* "), {}).get("fields") or []
    return []


def stub(root):
    model = _headers.read(_headers.find(root))
    lines = [_HEAD]
    for function in sorted(model["functions"], key=lambda function: function["name"]):
        name = function["name"][5:]
        if function["variadic"] or name in _OWN or any(p["type"] == "callback" for p in function["parameters"]):
            continue
        wanted = [p for p in function["parameters"] if p["type"] != "weft_error *" and p["name"] != "options"]
        options = _fields(model, function["parameters"])
        given = [_parameter(p) for p in wanted]
        taken = {p["name"] for p in wanted}
        more = [f"{_parameter(field)} = ..." for field in options if field["name"] not in taken]
        returns = _KINDS.get(_plain(function["returns"]), "Any") if function["returns"] != "weft_value" else "Any"
        lines.append(f"def {name}({', '.join([*given, *(['*'] if more else []), *more])}) -> {returns}: ...")
        if more and function["returns"] == "weft_value":
            kind = "Optimizer" if any(field["name"] == "rate" for field in options) else "Layer"
            named = "".join(word.capitalize() for word in name.split("_"))
            first = "variables: Any = ..., " if kind == "Optimizer" else ""
            rest = [item for item in more if not (first and item.startswith("variables:"))]
            lines.append(f"def {named}({first}*, {', '.join(rest)}) -> {kind}: ...")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(stub(sys.argv[1] if len(sys.argv) > 1 else "."))

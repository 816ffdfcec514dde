"""_c: the C library by ctypes. Types and prototypes are those of the headers, each read when it is used first; none is written here.

    from weft import c
    c.lib.weft_mesh_n_ranks(mesh.handle)    # any function of any public header, with its types
    c.constants["WEFT_MAX_DIMS"], c.types["weft_shape"], c.functions["weft_relu"]["parameters"]
"""
import ctypes
import glob
import os
import threading

from . import _headers, _index

BASIC = {
    "bool": ctypes.c_bool, "char": ctypes.c_char, "signed char": ctypes.c_byte, "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short, "unsigned short": ctypes.c_ushort, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
    "unsigned int": ctypes.c_uint, "long": ctypes.c_long, "unsigned long": ctypes.c_ulong,
    "long long": ctypes.c_longlong, "unsigned long long": ctypes.c_ulonglong, "float": ctypes.c_float,
    "double": ctypes.c_double, "size_t": ctypes.c_size_t, "ptrdiff_t": ctypes.c_ssize_t,
    "intptr_t": ctypes.c_ssize_t, "uintptr_t": ctypes.c_size_t,
    **{f"int{n}_t": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
}  # fmt: skip


def _find():
    """The library that LIBWEFT names, else the one of the tree or the prefix that this file lies in; and its headers,
    by which alone it is called: others might not fit."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.environ.get("LIBWEFT")
    if not path:
        near = [os.path.join(here, "lib")]  # a wheel
        near += [  # TREE/python/weft; PREFIX/lib/python3/dist-packages/weft, with lib, lib/x86_64-linux-gnu or lib64
            os.path.join(here, up, name)
            for up, name in (("../..", "build/lib"), ("../../..", "."), ("../../..", "*-linux-*"), ("../../../..", "lib64"))
        ]
        found = [path for folder in near for path in glob.glob(os.path.join(folder, "libweft.so.0"))]
        if not found:
            raise ImportError("weft: no libweft.so.0 near this module; build it, or name it in LIBWEFT")
        path = found[0]
    path = root = os.path.realpath(path)
    while os.path.dirname(root) != root:
        root = os.path.dirname(root)
        if os.path.isfile(os.path.join(root, "include", "weft.h")):
            return path, root
    raise ImportError(f"weft: no folder above {path} has include/weft.h; install the headers beside it")


def type_of_field(field):
    """The ctypes type of a field or parameter of the model."""
    if field["type"] == "callback":
        return _callback(field)
    lengths = field.get("length")
    if not lengths:
        return type_of(field["type"])
    made = type_of(field["type"])
    for length in reversed(lengths):
        made = ctypes.POINTER(made) if length is None else made * length
    return made


def type_of(text):
    """The ctypes type of "const weft_dim *" and the like."""
    words = text.replace("*", " * ").split()
    is_const = words[0] == "const"
    words = [word for word in words if word != "const"]
    name, stars = " ".join(word for word in words if word != "*"), words.count("*")
    if name == "void":
        if stars == 0:
            return None
        made, stars = ctypes.c_void_p, stars - 1
    elif name == "char" and stars and is_const:
        made, stars = ctypes.c_char_p, stars - 1
    elif name in model["typedefs"]:
        made = type_of(model["typedefs"][name])
    else:
        made = types[name]
    for _ in range(stars):
        made = ctypes.POINTER(made)
    return made


def _callback(described):
    # A text that Python returns: its address, as ctypes would not say how long the text lives.
    returns = ctypes.c_void_p if described["returns"] == "const char *" else type_of(described["returns"])
    return ctypes.CFUNCTYPE(returns, *[_parameter(p) for p in described["parameters"]])


def _parameter(parameter):
    """An array that is a parameter is a pointer."""
    lengths = parameter.get("length")
    if not lengths:
        return type_of_field(parameter)
    return ctypes.POINTER(type_of_field({"type": parameter["type"], "length": lengths[1:]}))


class _Types(dict):
    """ctypes' types by their names in C, each made when it is asked for first, with those that it is made of."""

    def __init__(self):
        super().__init__(BASIC)
        self.update({"FILE": type("FILE", (ctypes.Structure,), {}), "va_list": ctypes.c_void_p})
        self.begun, self.depth = {}, 0  # structs without their fields, which no other thread sees

    def __missing__(self, name):
        with _making:
            if not (name in self or name in self.begun):
                self.depth += 1
                try:
                    self.begun[name] = self._begin(name)
                    if self.depth == 1:
                        self._end()
                finally:
                    self.depth -= 1
                    if self.depth == 0:
                        self.begun = {}
            return self.begun.get(name) or self[name]

    @staticmethod
    def _begin(name):
        if name in model["enums"]:
            return ctypes.c_int
        if name in model["callbacks"]:
            return _callback(model["callbacks"][name])
        if name not in model["structs"]:
            raise KeyError(name)
        return type(name, (ctypes.Structure,), {})

    def _end(self):
        """Of all that was begun, and of what that asks for."""
        done = 0
        while done < len(self.begun):
            for name in list(self.begun)[done:]:
                self._fill(name)
                done += 1
        self.update(self.begun)

    def _fill(self, name):
        """Fields, those of structs inside first."""
        fields = model["structs"].get(name, {"fields": None})["fields"]
        made = self[name]
        if fields is None or hasattr(made, "_fields_"):
            return
        for field in fields:
            if field["type"] in model["structs"]:
                self._fill(field["type"])
        made._fields_ = [(field["name"], type_of_field(field)) for field in fields]


class _Library(ctypes.CDLL):
    """Its functions have the headers' types."""

    def __getattr__(self, name):
        if name not in functions:
            return super().__getattr__(name)
        entry, function = self[name], functions[name]
        entry.argtypes = [_parameter(parameter) for parameter in function["parameters"]]
        entry.restype = type_of(function["returns"])
        setattr(self, name, entry)
        return entry


def _check_functions():
    for name in functions.names():
        try:
            lib[name]
        except AttributeError:
            raise ImportError(f"weft: {functions[name]['header']} declares {name}, and {lib._name} does not have it") from None


def _opened(path):
    try:
        return _Library(path)
    except OSError as error:
        way_out = "; MPI is that of the machine, so install it (Debian: libopenmpi3)" if "libmpi" in str(error) else ""
        raise ImportError(f"weft: {path} cannot be loaded: {error}{way_out}") from None


def _load(path):
    """A wheel has what the library needs beside it, each found by name once it is loaded: so in whatever order they load."""
    folder = os.path.dirname(path)
    others = [name for name in sorted(os.listdir(folder)) if not name.startswith("libweft")] if os.path.basename(path) == "libweft.so.0" else []
    while others:
        left = []
        for name in others:
            try:
                ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                left.append(name)
        if left == others:
            break  # the loader may find them elsewhere, and says so if it does not
        others = left
    return _opened(path)


_path, _root = _find()
_making = threading.RLock()
os.register_at_fork(after_in_child=_making._at_fork_reinit)
model = _index.index(_headers.find(_root))
constants, functions = model["constants"], model["functions"]
lib = _load(_path) if _root == os.path.dirname(os.path.abspath(__file__)) else _opened(_path)
types = _Types()
_check_functions()

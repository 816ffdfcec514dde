"""_stored: checkpoints on disk: what a program has a variable for is read into that."""
import ctypes
import os

import numpy

from . import _c as c, _call
from ._convert import checked
from ._values import Error


class Stored:
    """A checkpoint, a folder of them, or a run: the newest then, or the one of this step."""

    def __init__(self, path, step=None):
        self.path = os.fspath(path)
        if step is not None:
            self.path = os.path.join(self.path, next((name for name in sorted(os.listdir(self.path))
                                                      if name[:5] == "step_" and name[5:].isdigit() and int(name[5:]) == step), f"step_{step}"))
        self.opened = _call.call("weft_stored_open", self.path)
        handle = self.opened.handle
        self.at = {c.lib.weft_stored_tensor_at(handle, i).contents.name.decode(): i for i in range(c.lib.weft_stored_n_tensors(handle))}
        self.state = c.types["weft_checkpoint_state"]()
        c.lib.weft_stored_state(handle, ctypes.byref(self.state))

    def fill(self, program, name):
        """A variable of the program, by its name, from that of the checkpoint. All processes call it."""
        tensor = c.lib.weft_stored_tensor_at(self.opened.handle, self.at[name]).contents
        value = program.find(name)
        dims, dtype = tuple((tensor.shape.dims[d].name.decode(), tensor.shape.dims[d].size) for d in range(tensor.shape.n_dims)), tensor.dtype.decode()
        if dims != tuple(map(tuple, value.dims)) or dtype != value.dtype:
            raise Error(1, f"load: variable {value!r} is {dims} {dtype} in checkpoint {self.path}; name that of its training")
        error, data = c.types["weft_error"](), numpy.empty(tensor.bytes, numpy.uint8)
        checked(c.lib.weft_stored_read(self.opened.handle, self.at[name], data.ctypes.data, ctypes.byref(error)), error)
        with _call.lock:
            checked(c.lib.weft_write(program.handle, value._c, value.array_kind[2], data.ctypes.data, data.nbytes, ctypes.byref(error)), error)

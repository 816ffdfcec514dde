"""_input: inputs of compiled programs, and whose numbers they hold.

An array that somebody may write is copied when a tensor is made of it, and copied again into the program that computes with the
tensor. A line of Python makes again what it made before, so its next tensor likely goes where its last one went. If that place is
free, the array is copied into it at once, and that was the only copy. A wrong guess costs one copy more.
"""
import ctypes
import weakref

import numpy

from . import _call, _values

c = _call.c


class Input:
    """One input of a program. Its numbers are those of the node that it holds, if any; `array` is its memory, where Python sees that."""

    __slots__ = ("program", "value", "held", "array", "was_seen")

    def __init__(self, program, value):
        self.program, self.value = program, value
        self.held = self.array = None
        self.was_seen = False

    def has(self, node):
        return self.held is not None and self.held() is node

    def read(self, at):
        """What it holds, for a node that has its numbers nowhere else."""
        return self.array.copy()

    def _only_here(self):
        """The node that somebody still has, and that has its numbers here alone."""
        node = self.held() if self.held is not None else None
        return node if node is not None and type(node.home) is tuple and node.home[0] is self else None

    def let_go(self):
        """What it holds gets numbers of its own."""
        node = self._only_here()
        if node is not None:
            node.data, node.home = self.read(0), None

    def fill(self, node, data):
        self.let_go()
        self.held = None  # until it is over
        self.program._write_ready(self.value, data)
        self.held = weakref.ref(node)

    def see(self):
        """Whether Python sees its memory: where one rank has the whole, on the host."""
        if not self.was_seen:
            self.was_seen = True
            shape, dtype, _ = self.value.array_kind
            if c.lib.weft_mesh_n_ranks(self.program.mesh.handle) == 1 and self.value.dtype != "bf16":
                at = c.lib.weft_local(self.program.handle, self.value._c, 0, ctypes.byref(c.types["weft_box"]()))
                if at:
                    count = int(numpy.prod(shape, dtype=numpy.int64))
                    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(at)
                    self.array = numpy.frombuffer(memory, dtype).reshape(shape)
        return self.array is not None

    def take(self, node, array):
        """Whether a new node has this array's numbers here from now on: not where those of another are that somebody may ask for, nor
        while a program runs."""
        session = node.session
        if session.trace is not None or session.pid != _values._process or not session.lock.acquire(blocking=False):
            return False
        try:
            if session.is_running or self._only_here() is not None:
                return False
            self.held = None
            numpy.copyto(self.array, array)
            node.home, self.held = (self, 0), weakref.ref(node)
            return True
        finally:
            session.lock.release()

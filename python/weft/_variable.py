"""_variable: variables as lazy tensors, what changes them, and gradients."""
import weakref

import numpy

from . import _call, _numbers, _record
from ._record import Info, Node, Type, dims_named, infos, place_of_user
from ._session import Session
from ._tensor import FLOATS, Tensor, emit, tensor
from ._values import Error

_grads = weakref.WeakKeyDictionary()  # gradients of variables, by their states: nodes, which nobody reads unasked


def _held(node):
    tensor = node.ref() if node.ref else None
    if tensor is None:
        tensor = Tensor.__new__(Tensor)
        tensor._node, node.ref = node, weakref.ref(tensor)
    return tensor


class VariableTensor(Tensor):
    """A variable of the session as a tensor: its number is what the last step left."""

    __slots__ = ("state",)

    def __init__(self, state):
        self.state = state

    @property
    def _weft_node(self):
        return self.state.node

    @property
    def name(self):
        return self.state.name

    def _data(self):
        session = self.state.session
        if session.trace is not None:
            session.trace.refuse(self.state.node)
        return session.read_state(self.state)

    def write(self, array):
        """Its numbers, the same by all processes."""
        of = self.state.type
        array = _numbers.array_of(array, of.dtype, tuple(d.size for d in of.dims), f"write: {self.name}")
        self.state.session.write_state(self.state, numpy.array(array))  # it may be written later

    def assign(self, value):
        """The variable becomes this tensor, now."""
        value = value if isinstance(value, Tensor) else tensor(value, self.dims, self.dtype)
        key = ("assign", self.state.type, value._weft_node.type)
        info = infos.get(key)
        if info is None:
            info = infos[key] = Info("assign", (), lambda graph, values: _call.call("weft_assign", *values))
            info.operands = key[1:]
        act(Node(info, (self.state.node, value._weft_node), None, place_of_user(), False, self.state.session))

    @property
    def grad(self):
        node = _grads.get(self.state)
        return None if node is None else _held(node)

    @grad.setter
    def grad(self, given):
        if given is None:
            _grads.pop(self.state, None)
        else:
            _grads[self.state] = given._weft_node


def act(node):
    """An effect is carried out at once, with all that waits."""
    session = node.session
    if session.trace is not None:
        session.trace.effect(node)
    else:
        session.flush([], [node, *session.also])
        session.also = []


def backward(loss):
    states = variables_of(loss)
    if not states:
        raise Error(1, f"backward: the tensor, {loss._weft_node.type}, depends on no variable; weft.grad takes gradients of tensors too")
    for state, slope in zip(states, grad(loss, [VariableTensor(state) for state in states])):
        had = _grads.get(state)
        _grads[state] = (slope if had is None else _held(had) + slope)._node


def variables_of(tensor):
    """The trainable variables that a tensor depends on, in the order in which they were met."""
    seen, found, stack = set(), {}, [tensor._weft_node]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.info.state is not None:
            found[node.info.state.name] = node.info.state
        stack.extend(reversed(node.operands))
    return [state for state in found.values() if state.type.dtype in FLOATS and state.slot_of is None]


def grad(of, with_respect_to=None, zeros_allowed=False):
    """d(of)/d(each), lazily: tensors of the dims of each. Of one tensor, one. None: of all variables that `of` depends on."""
    one = isinstance(with_respect_to, Tensor)
    wanted = [with_respect_to] if one else list(with_respect_to) if with_respect_to is not None else [
        VariableTensor(state) for state in variables_of(of)]
    for item in [of, *wanted]:
        if not isinstance(item, Tensor):
            raise TypeError(f"grad: {item!r} is no lazy tensor; weft.gradients is for values of a graph")
    if not wanted:
        raise Error(1, "grad: there is nothing to take gradients with respect to: the tensor depends on no variable")
    operands = (of._weft_node, *[item._weft_node for item in wanted])
    key = ("gradients", zeros_allowed, *[node.type for node in operands])
    info = infos.get(key)
    if info is None:
        from . import gradients

        info = infos[key] = Info("gradients", key[3:], lambda graph, values: gradients(values[0], values[1:], zeros_allowed=zeros_allowed))
        info.operands, info.differentiates = key[2:], True
        info.shape = [_record.Hole(i) for i in range(len(wanted))]
        if of.dims or of.dtype not in FLOATS:
            del infos[key]
            raise Error(1, f"grad: the tensor is {of._weft_node.type}; a float scalar is wanted, as .mean() or .sum() gives")
    made = emit(info, operands, place_of_user())
    return made[0] if one else made


class Tape:
    """with weft.Tape() as tape: what is recorded inside is kept for tape.gradient, as often as wanted; tapes may stand in tapes, and
    gradients are tensors of which gradients can be taken. Lazy tensors are their own tape: this one keeps tensors that are no
    variables (watch) differentiable after they were read."""

    def __enter__(self):
        return self

    def __exit__(self, *given):
        return None

    def watch(self, *tensors):
        for item in tensors:
            item._weft_node.needs = True

    def gradient(self, of, with_respect_to):
        return grad(of, with_respect_to, zeros_allowed=True)


def variable(name, dims, initial=0.0, dtype="f32"):
    """A variable of the session: weft.Variable("w", "pixel:784 digit:10", weft.normal(0.0, 0.05)). The same name is the same one. initial: a
    number, what weft.normal and its like give, or an array."""
    session = Session.current or Session.now()
    is_array = (hasattr(initial, "__array__") or isinstance(initial, list)) and not _numbers.is_number(initial)
    is_new = name not in session.states
    made = VariableTensor(session.state(name, Type.of(dims_named(dims, (), "Variable"), dtype), 0.0 if is_array else initial))
    if is_array and is_new:
        try:
            made.write(initial)
        except (TypeError, ValueError):
            del session.states[name]
            raise
    return made

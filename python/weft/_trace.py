"""_trace: functions that are recorded once: jit, and the bodies of scan, while_loop, cond; and vmap.

    @weft.jit(mesh="data:2", layout="batch:data")
    def step(x, y): ...
    (h, hs) = weft.scan(lambda h, x: (cell(h, x),) * 2, h0, xs, over="time")
"""
import functools
import warnings

from . import _call, _record
from ._convert import without_const
from ._record import Hole, Info, Node, Type, dims_named, fill, freeze, infos, place_of_user, said_place, vmapped
from ._session import Recompiled, Session, built_again
from ._tensor import Tensor, _ref, emit, tensor
from ._values import Error

_UNKNOWN = object()  # in place of where an argument's numbers are, while a function is recorded


class Trace:
    """What a function records: its nodes, and its effects."""

    def __init__(self, session, what):
        self.session, self.what, self.effects = session, what, []

    def __enter__(self):
        self.outer, self.waiting = self.session.trace, self.session.pending
        self.session.trace, self.session.pending = self, []
        return self

    def __exit__(self, *given):
        self.nodes = self.session.pending
        self.session.trace, self.session.pending = self.outer, self.waiting

    def refuse(self, node):
        place = said_place(place_of_user())
        raise TypeError(f"{place}: in {self.what} the numbers of a tensor, {node.type}, are asked for (by if, while, print, float or numpy), and while "
                        "it is recorded there are none; choose by weft.where or weft.cond, repeat by weft.while_loop or weft.scan, or read what "
                        "the function returns")

    def effect(self, node):
        if self.outer is not None or not self.what.startswith("jit"):
            raise Error(1, f"in {self.what} a variable would change, and nothing is assigned in a body; return what it is to become")
        self.effects.append(node)


def placeholder(of_type, session, place):
    node = Node(of_type.leaf, (), of_type, place, False, session)
    node.home = _UNKNOWN
    made = Tensor.__new__(Tensor)
    made._node, node.ref = node, _ref(made)
    return made


def _tensors_in(result, found):
    """The tensors of a result, and the same with a Hole for each."""
    if isinstance(result, Tensor):
        found.append(result)
        return Hole(len(found) - 1)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_tensors_in(item, found) for item in result])
    if isinstance(result, (tuple, list)):
        return type(result)(_tensors_in(item, found) for item in result)
    if isinstance(result, dict):
        return {key: _tensors_in(item, found) for key, item in result.items()}
    return result


class _Jitted:
    """One function, compiled once for each kind of arguments."""

    def __init__(self, function, session, mesh, layout):
        self.function, self.session, self.mesh, self.layout, self.known, self.last = function, session, mesh, layout, {}, None
        functools.update_wrapper(self, function)

    def _where(self):
        if self.session is None and self.mesh is None and self.layout is None:
            return Session.now()
        if self.session is None:
            now = Session.current
            self.session = Session(self.mesh if self.mesh is not None else now.mesh if now else "",
                                   self.layout if self.layout is not None else now.layout if now else "", seed=now.seed if now else 0)
        return self.session

    def __call__(self, *given, **options):
        session = self._where()
        session.check()
        nodes = []
        key = (id(session), freeze(given, nodes), freeze(options, nodes))
        found = self.known.get(key)
        if found is None:
            self._say(key, place_of_user())
            found = self.known[key] = self._record(session, given, options, nodes)
        compiled, leaves, types, shape = found
        outs = [Node(of_type.leaf, (), of_type, None, False, session) for of_type in types]
        with session.lock:
            session.run(compiled, [nodes[leaf] if isinstance(leaf, int) else leaf for leaf in leaves], outs)
        made = []
        for node in outs:
            one = Tensor.__new__(Tensor)
            one._node, node.ref = node, _ref(one)
            made.append(one)
        return fill(shape, made)

    def _say(self, key, place):
        if self.last is not None:
            warnings.warn_explicit(f"jit {self.function.__name__} is recorded again: its arguments are {_said(key[1])} and were {_said(self.last[1])}",
                                   Recompiled, place[0].co_filename, place[1], registry={})
        self.last = key

    def _record(self, session, given, options, nodes):
        place = place_of_user()
        counter, found = [], []
        stand_ins = [placeholder(node.type, session, place) for node in nodes]
        given, options = _record.with_holes(given, counter), _record.with_holes(options, counter)
        with session, Trace(session, f"jit {self.function.__name__}") as trace:
            shape = _tensors_in(self.function(*fill(given, stand_ins), **fill(options, stand_ins)), found)
        outs = [one._weft_node for one in found]
        effects = [*trace.effects, *(session.also if trace.effects else [])]
        session.also = []
        if not outs and not effects:
            raise TypeError(f"jit {self.function.__name__}: it returned {shape!r}; a function that is recorded returns tensors, or changes variables")
        numbers = {id(one._node): at for at, one in enumerate(stand_ins)}
        with session.lock:
            order, structure, leaves = session.walk(outs + effects)
            compiled = session.compile(order, ("jit", id(self), structure), leaves, outs, effects)
        return compiled, [numbers.get(id(leaf), leaf) for leaf in leaves], [node.type for node in outs], shape


def _said(frozen):
    """Arguments, for a sentence."""
    if isinstance(frozen, Type):
        return str(frozen)
    if isinstance(frozen, str):
        return repr(frozen)
    if isinstance(frozen, tuple) and frozen and frozen[0] in (tuple, list):
        return "(" + ", ".join(_said(item) for item in frozen[1:]) + ")"
    return repr(frozen[1]) if isinstance(frozen, tuple) and len(frozen) == 2 else str(frozen)


def jit(function=None, *, session=None, mesh=None, layout=None):
    """@weft.jit, or @weft.jit(mesh="data:2", layout="batch:data"): recorded at the first call, and again where the dims or dtypes of
    tensors, or other arguments, are new, which it says. Its results are known: no gradient goes through the call from outside."""
    if function is None:
        return lambda function: _Jitted(function, session, mesh, layout)
    return _Jitted(function, session, mesh, layout)


# ---- bodies ---------------------------------------------------------------------------------------------------------------


class _Body:
    """A function recorded for arguments of these types: replayed in any graph."""

    def __init__(self, function, types, what):
        session, place = Session.now(), place_of_user()
        self.given = [placeholder(of_type, session, place) for of_type in types]
        found = []
        with Trace(session, what) as trace:
            self.shape = _tensors_in(function(*self.given), found)
        self.outs, self.nodes, self.captured = [one._weft_node for one in found], [], []
        seen = {id(one._node): at for at, one in enumerate(self.given)}
        key = []
        for node in trace.nodes:
            for one in (*node.operands, node) if type(node.info.build) is int else (node,):  # a part comes behind what it is of
                if id(one) not in seen:
                    key.append((one.info.number, *[self._at(seen, operand) for operand in one.operands]))
                    seen[id(one)] = len(seen)
                    self.nodes.append(one)
        self.key = (tuple(key), tuple(self._at(seen, out) for out in self.outs))

    def _at(self, seen, node):
        """Its number; what was there before the body is captured."""
        if id(node) not in seen:
            seen[id(node)] = len(seen)
            self.captured.append(node)
        return seen[id(node)]

    def replay(self, graph, given, captured):
        values = {id(one._node): value for one, value in zip(self.given, given)}
        values.update({id(node): value for node, value in zip(self.captured, captured)})
        for node in self.nodes:
            values[id(node)] = built_again(graph, node, values)
        return [values[id(out)] for out in self.outs]


def _flat(given):
    """Tensors of one tensor, or of a tuple, list or dict of some; numbers become tensors."""
    found = []
    if isinstance(given, (int, float)):
        given = tensor(given)
    shape = _tensors_in(given, found)
    return found, shape


def _composite(name, key, operands, build):
    """A node of bodies: key says what they are."""
    key = (name, *key, *[one.type for one in operands])
    info = infos.get(key)
    if info is None:
        info = Info(name, (), build)
        _record.inferred(info, [one.type for one in operands])
        infos[key] = info
    return emit(info, tuple(operands), place_of_user())


def _call_c(name, *given):
    return _call.call("weft_" + name, *given)


def scan(f, carry, xs=None, over="trip", trips=None):
    """f(carry, x) gives (next carry, y): along the dim `over` of xs (or so many trips, x being the trip's number). Returns the last carry,
    and the ys stacked along `over` (None where f gives none). A carry is a tensor, or a tuple of some."""
    begun, shape = _flat(carry)
    each, each_shape = _flat(xs) if xs is not None else ([], None)
    dim = dims_named([over], [d for x in each for d in x.dims], "scan: over")[0] if each else _record.Dim(over, trips)
    if not each and not isinstance(trips, int):
        raise TypeError("scan: without xs the number of trips is wanted, as trips=10")
    types = [x._weft_node.type for x in begun]
    seen = [Type.of([d for d in x.dims if d.name != dim.name], x.dtype) for x in each] or [Type.of((), "i32")]
    n, told = len(begun), {}

    def function(*given):
        result = f(fill(shape, given[:n]), fill(each_shape, given[n:]) if each else given[n])
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"scan: the function gave {type(result).__name__}; it gives a pair, the next carry and what is stacked, or None")
        nexts, made = _flat(result[0])[0], _flat(result[1])
        if [x._weft_node.type for x in nexts] != types:
            raise ValueError(f"scan: the carry is {', '.join(map(str, types))}, and the function gives {', '.join(str(x._weft_node.type) for x in nexts)}; "
                             "it goes from trip to trip unchanged in dims and dtype")
        told["ys"] = made[1]
        return nexts + made[0]

    body = _Body(function, types + seen, "the body of scan")
    n_each = len(each)

    def build(graph, values):
        trip = _call_c("scan_begin", graph, dim.size)
        carried = [_call_c("scan_carry", value) for value in values[:n]]
        given = [_call_c("scan_each", value, dim) for value in values[n:n + n_each]] or [trip]
        outs = body.replay(graph, carried + given, values[n + n_each:])
        for one, following in zip(carried, outs):
            _call_c("scan_next", one, following)
        _call_c("scan_end", trip)
        return [*[_call_c("scan_last", one) for one in carried], *[_call_c("scan_stack", out, dim) for out in outs[n:]]]

    operands = [x._weft_node for x in begun + each] + body.captured
    made = _composite("scan", (body.key, dim, n, n_each), operands, build)
    made = made if isinstance(made, (list, tuple)) else [made]
    return fill(shape, made[:n]), fill(told["ys"], made[n:]) if len(made) > n else None


def while_loop(condition, f, carry, most=1000):
    """carry = f(carry) while condition(carry), a scalar, is not 0: at most so many times. A carry is a tensor, or a tuple of some."""
    begun, shape = _flat(carry)
    types = [x._weft_node.type for x in begun]
    asked = _Body(lambda *given: condition(fill(shape, given)), types, "the condition of while_loop")
    body = _Body(lambda *given: f(fill(shape, given)), types, "the body of while_loop")
    if [node.type for node in body.outs] != types:
        raise ValueError(f"while_loop: the carry is {', '.join(map(str, types))}, and the function gives {', '.join(str(o.type) for o in body.outs)}")
    n, first = len(begun), len(begun) + len(asked.captured)

    def build(graph, values):
        trip = _call_c("scan_begin", graph, most)
        carried = [_call_c("scan_carry", value) for value in values[:n]]
        _call_c("scan_while", asked.replay(graph, carried, values[n:first])[0])
        for one, following in zip(carried, body.replay(graph, carried, values[first:])):
            _call_c("scan_next", one, following)
        _call_c("scan_end", trip)
        return [_call_c("scan_last", one) for one in carried]

    operands = [x._weft_node for x in begun] + asked.captured + body.captured
    made = _composite("while_loop", (asked.key, body.key, most, n), operands, build)
    return fill(shape, made)


def cond(condition, yes, no, *operands):
    """yes(*operands) where condition, a scalar tensor, is not 0, else no(*operands): one of both is computed."""
    if not isinstance(condition, Tensor):
        return (yes if condition else no)(*operands)
    types = [x._weft_node.type for x in operands]
    bodies = [_Body(f, types, f"the {name} branch of cond") for f, name in ((yes, "first"), (no, "second"))]
    outs = [[node.type for node in body.outs] for body in bodies]
    if outs[0] != outs[1]:
        raise ValueError(f"cond: one branch gives {', '.join(map(str, outs[0]))} and the other {', '.join(map(str, outs[1]))}; they give the same")
    n, first = 1 + len(operands), 1 + len(operands) + len(bodies[0].captured)

    def build(graph, values):
        begun = _call_c("cond_begin", values[0])
        a = bodies[0].replay(graph, values[1:n], values[n:first])
        begun = _call_c("cond_else", begun)
        b = bodies[1].replay(graph, values[1:n], values[first:])
        _call_c("cond_end", begun)
        return [_call_c("cond", one, other) for one, other in zip(a, b)]

    nodes = [condition._weft_node, *[x._weft_node for x in operands]] + bodies[0].captured + bodies[1].captured
    return fill(bodies[0].shape, _composite("cond", (bodies[0].key, bodies[1].key), nodes, build))


def vmap(f, dim):
    """f, written for one element, for all along `dim`: vmap(f, "batch")(x). What f does not see of x it does not mix: an op whose result
    would lack the dim is refused. No loop: the dim is one of each op's, and a layout may split it."""
    name = dim if isinstance(dim, str) else dim.name

    @functools.wraps(f)
    def mapped(*given, **options):
        dims = [d for x in [*given, *options.values()] if isinstance(x, Tensor) for d in x._weft_node.type.dims if d.name == name]
        if not dims:
            raise ValueError(f"vmap: no argument has the dim {name}")
        with vmapped(dims[0]):
            return f(*given, **options)

    return mapped

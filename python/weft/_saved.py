"""_saved: programs in files: saved from a function or a graph, loaded without the code that built them.

    weft.save("net.weft", net, x)                 net(x), frozen for inference, and its variables in net.weft.ckpt
    net = weft.load("net.weft")                   elsewhere, later; weft run net.weft does as well
    logits = net(x=images)                        arrays in and out
"""
import inspect
import os
import re

import numpy

from . import _c as c, _call, _numbers
from ._convert import checked
from ._record import fill
from ._session import Session
from ._stored import Stored
from ._tensor import Tensor
from ._trace import Trace, _tensors_in, placeholder
from ._values import Error, Value


# ---- saving ---------------------------------------------------------------------------------------------------------------


def _named(what, given, found):
    """(name, tensor) of tensors in arguments or results, by the words and keys that lead to them."""
    if isinstance(given, Tensor):
        found.append((what, given))
    elif isinstance(given, dict):
        for key, item in given.items():
            _named(f"{what}/{key}" if what else str(key), item, found)
    elif isinstance(given, (tuple, list)):
        names = getattr(given, "_fields", None) or [str(at) for at in range(len(given))]
        for name, item in zip(names, given):
            _named(f"{what}/{name}" if what else name if not name.isdigit() else f"output{name}", item, found)
    return found


def _arguments(function, given, options):
    """The words of the function's own parameters."""
    try:
        bound = inspect.signature(getattr(function, "forward", function)).bind(*given, **options)
    except TypeError as error:
        raise TypeError(f"save: {error}; behind the function stand its arguments, as it would be called") from None
    found = []
    for name, item in bound.arguments.items():
        _named(name, item, found)
    if not found:
        raise TypeError("save: no argument is a tensor; give tensors of the dims and dtypes that it is to take: weft.save(path, net, x)")
    return found


def _recorded(session, function, given, options, n):
    """The function's nodes: of its arguments, its results by name, its effects."""
    stand_ins, nodes = [], []
    place = None

    def stand_in(item):
        if isinstance(item, Tensor):
            nodes.append(item._weft_node)
            stand_ins.append(placeholder(item._weft_node.type, session, place))
            return stand_ins[-1]
        if isinstance(item, dict):
            return {key: stand_in(one) for key, one in item.items()}
        if isinstance(item, tuple) and hasattr(item, "_fields"):
            return type(item)(*[stand_in(one) for one in item])
        return type(item)(stand_in(one) for one in item) if isinstance(item, (tuple, list)) else item

    given, options = stand_in(tuple(given)), stand_in(dict(options))
    with session, Trace(session, "jit of weft.save") as trace:
        result = function(*given, **options)
    results = _named("", result, []) if not isinstance(result, Tensor) else [("output", result)]
    if not results:
        raise TypeError(f"save: the function gives {type(result).__name__}; it gives tensors: one, a tuple, or a dict by their names")
    return stand_ins, results, trace.effects


def _check_known(leaves, stand_ins):
    mine = {id(one._node) for one in stand_ins}
    for leaf in leaves:
        if id(leaf) not in mine:
            raise Error(1, f"save: the function uses a tensor, {leaf.type}, that is neither an argument of it nor a variable; hand it over, or make it "
                           "a weft.Variable")


def _rules_for(session, dims):
    """Those of the session's rules whose dims the program has."""
    return ",".join(rule for rule in str(session.layout).split(",") if rule.partition(":")[0] in dims)


def _save_function(path, function, given, options, frozen, checkpoint):
    from . import Graph

    session = Session.now()
    session.check()
    names = [name for name, _ in _arguments(function, given, options)]
    stand_ins, results, effects = _recorded(session, function, given, options, len(names))
    outs = [one._weft_node for _, one in results]
    if frozen and effects:
        raise Error(1, "save: the function changes variables, and a frozen program is for inference; give frozen=False for a training step")
    effects = [*effects, *(session.also if effects else [])]
    session.also = []
    with session.lock:
        order, _, leaves = session.walk(outs + effects)
        _check_known(leaves, stand_ins)
        graph = Graph(session.seed)
        values = {id(one._node): graph.input(name, one._node.type.dims, one._node.type.dtype) for name, one in zip(names, stand_ins)}
        made, _ = session.built(graph, order, values, outs, effects)
        taken = set(names)
        for (name, one), value in zip(results, made):
            if one._weft_node.info.state is not None or id(one._weft_node) in {id(x._node) for x in stand_ins}:
                raise Error(1, f"save: {name} is an argument or a variable itself; return what is computed of it, as {name} * 1")
            if name not in taken:
                taken.add(name)
                _call.call("weft_name", value, name)
        dims = {dim.name for node in order for of in (*node.info.types, node.type) if of for dim in of.dims}
        states = [node.info.state for node in order if node.info.state is not None]
        states += [session.states[name] for node in order for name in node.info.variables]
        folder = None
        if checkpoint and states:
            folder = f"{path}.ckpt"
            _save_variables(session, states, folder)
        what = dict(outputs=made, mesh=str(session.mesh), layout=_rules_for(session, dims), is_frozen=bool(frozen),
                    checkpoint=folder)
        _written_by_root(session, graph, path, what)


def _save_variables(session, states, folder):
    waiting = [state.node for state in states if state.name not in session.kept or state.written is not None]
    if waiting:
        session.flush(waiting)
    opened = _call.call("weft_checkpoints_open", folder, None)
    _call.call("weft_checkpoints_save", opened, session.holder, dict(step=session.steps, seed=session.seed))
    _call.call("weft_checkpoints_wait", opened)


def _written_by_root(session, graph, path, what):
    """By one process; all go on when the file is there, or have its failure."""
    error, failed = c.types["weft_error"](), None
    try:
        if session.is_root:
            _call.call("weft_graph_save", graph, path, what)
    except Error as found:
        failed = found
        c.lib.weft_fail(c.ctypes.byref(error), c.constants["WEFT_" + found.status.upper()], b"%s", str(found).encode())
    status = c.lib.weft_world_agree(c.ctypes.byref(error))
    if failed is not None:
        raise failed
    checked(status, error)


def save(path, what, *given, frozen=None, checkpoint=True, mesh=None, layout=None, **options):
    """A program in a file: a function or module with its arguments, weft.save("net.weft", net, x), or values of a graph.

    Of a function, inputs have the names of its parameters and results those of the dict that it gives, or output; its variables are
    written beside the file, in PATH.ckpt (checkpoint=False: not), and mesh and layout are those of the session, as defaults. frozen,
    which a function is unless frozen=False: dropout is off and batch norm takes its averages. Values of a graph have the names of
    weft.name; mesh, layout and checkpoint (a path) are what is said here. All processes call it."""
    path = os.fspath(path)
    values = [what] if isinstance(what, Value) else list(what) if isinstance(what, (list, tuple)) else None
    if values is not None:
        if not values or not all(isinstance(value, Value) for value in values):
            raise TypeError("save: a list holds values of a graph, which a program is to give")
        _call.call("weft_graph_save", values[0].graph, path,
                   dict(outputs=values, is_frozen=bool(frozen), mesh=mesh, layout=layout, checkpoint=checkpoint if isinstance(checkpoint, str) else None))
    elif callable(what):
        if mesh is not None or layout is not None:
            raise TypeError("save: mesh and layout of a function are those of its session; they are given for values of a graph")
        _save_function(path, getattr(what, "function", what) if hasattr(what, "known") else what, given, options,
                       True if frozen is None else frozen, checkpoint)
    else:
        raise TypeError(f"save: {what!r} is no function, module or list of values")


# ---- loading --------------------------------------------------------------------------------------------------------------


class Saved:
    """A program that was loaded: called with arrays, by the names of its inputs or in their order, it gives arrays by name; one alone.

    inputs and outputs: {name: value of the graph}, on which building may go on. program: for all else (read("w"), plan(), run())."""

    def __init__(self, path, mesh, layout, checkpoint, options):
        from . import Graph, Layout, Mesh, Program

        error, handle, saved = c.types["weft_error"](), c.ctypes.POINTER(c.types["weft_graph"])(), c.ctypes.POINTER(c.types["weft_saved"])()
        self.path = os.fspath(path)
        status = c.lib.weft_graph_load(_numbers.text(self.path, "load: path"), c.ctypes.byref(handle), c.ctypes.byref(saved), c.ctypes.byref(error))
        checked(status, error)
        self.graph, facts = Graph.__new__(Graph), saved.contents  # which the library has made
        self.graph._own("graph", handle)
        self.graph.rules = []
        said = {name: (getattr(facts, name) or b"").decode() for name in ("mesh", "layout", "checkpoint")}
        self.is_frozen, self.version = bool(facts.is_frozen), facts.version
        outputs = self._values(facts.outputs)
        self.inputs = {value.name: value for value in self._values(facts.inputs)}
        results = [value for value in outputs if not c.lib.weft_is_update(value._c)]
        self.outputs = {value.name or f"output{at}": value for at, value in enumerate(results)}
        mesh = mesh if isinstance(mesh, Mesh) else Mesh(said["mesh"] if mesh is None else mesh)
        if layout is None:  # that of the file; on another mesh than its own by the axes that are there
            is_own = str(mesh) == said["mesh"] or not said["mesh"]
            layout = said["layout"] if is_own else re.sub(r"([^?,+])(?=[,+]|$)", r"\1?", said["layout"])
        self.program = Program(mesh, layout if isinstance(layout, Layout) else layout, outputs, **options)
        if checkpoint is None:
            checkpoint = self._found(said["checkpoint"])
        self.checkpoint = checkpoint or None
        if checkpoint:
            self.restore(checkpoint)

    def _found(self, checkpoint):
        """That of the file; where it is not at its old place, the one of its name beside the file, moved with it."""
        beside = os.path.join(os.path.dirname(self.path), os.path.basename(checkpoint))
        return beside if checkpoint and not os.path.exists(checkpoint) and os.path.exists(beside) else checkpoint or False

    def _values(self, given):
        copies = (c.types["weft_value"] * max(1, given.n_values))()
        for at in range(given.n_values):
            copies[at].graph, copies[at].id = given.values[at].graph, given.values[at].id
        return [Value(self.graph, c.types["weft_value"].from_buffer_copy(copies[at])) for at in range(given.n_values)]

    def variables(self):
        """The names of its variables."""
        names = []
        while True:
            raw = c.lib.weft_variable_at(self.program.handle, len(names))
            if not raw.id:
                return names
            names.append(c.lib.weft_name_of(raw).decode())

    def restore(self, checkpoint):
        """The variables, by their names, from a checkpoint, a folder of them, or a run. All processes call it."""
        stored = Stored(checkpoint)
        for name in self.variables():
            if name not in stored.at:
                raise Error(1, f"load: checkpoint {checkpoint} has no variable {name}{_numbers.did_you_mean(name, stored.at)}; name that of its "
                               "training, or give checkpoint=False")
            stored.fill(self.program, name)
        c.lib.weft_set_runs(self.program.handle, stored.state.step)  # an optimizer counts on

    def __call__(self, *given, **named):
        """One run. All processes call it, with the same arrays."""
        if len(given) > len(self.inputs):
            raise TypeError(f"{self.path} takes {', '.join(self.inputs) or 'nothing'}, and {len(given)} arrays were given")
        taken = dict(zip(self.inputs, given))
        for name, array in named.items():
            if name not in self.inputs:
                raise TypeError(f"{self.path} has no input {name}{_numbers.did_you_mean(name, self.inputs)}; it takes {', '.join(self.inputs) or 'nothing'}")
            if name in taken:
                raise TypeError(f"{self.path}: {name} was given twice")
            taken[name] = array
        for name in self.inputs:
            if name not in taken and c.lib.weft_find_input(self.program.handle, name.encode()).id:
                raise TypeError(f"{self.path}: input {name}, {self.inputs[name]!r}, is not given")
        with _call.lock:  # threads take turns: each gets what it gave
            for name, array in taken.items():
                self.program.write(self.inputs[name], array.numpy() if isinstance(array, Tensor) else array)
            self.program.run()
            found = {name: self.program.read(value) for name, value in self.outputs.items()}
        return next(iter(found.values())) if len(found) == 1 else found

    def __repr__(self):
        said = [", ".join(f"{name} [{', '.join(f'{d.name}:{d.size}' for d in value.dims)}] {value.dtype}" for name, value in of.items())
                for of in (self.inputs, self.outputs)]
        return f"<weft.Saved {self.path!r}: {said[0] or 'nothing'} -> {said[1] or 'updates alone'}>"

    def close(self):
        self.program.close()
        self.graph.close()


def load(path, mesh=None, layout=None, checkpoint=None, **options):
    """A program that weft.save, or C's weft_graph_save, has saved, without the code that built it: a weft.Saved.

    mesh, layout, checkpoint: those of the file where they are None; on another mesh than the file's its layout is that of the axes which are there.
    checkpoint=False: variables have their initial values. options: as of weft.Program. All processes call it."""
    return Saved(path, mesh, layout, checkpoint, options)

"""_session: where lazy tensors are computed: a mesh, a layout, variables, and the programs that were compiled.

What was recorded is gone through from the tensors that are wanted back to what is known. The kinds of its nodes and how they hang
together are the key of a dictionary of programs, so a loop compiles once. Programs share variables: the first that has one keeps
it, and every later one has all of them (weft_compile_options.share).
"""
import os
import warnings
import weakref

import numpy

from . import _call, _numbers, _values
from ._convert import from_c
from ._input import Input
from ._interrupt import Deferred
from ._record import Info, Node, Type, said_place, values_in
from ._stored import Stored
from ._values import Error, new_lock, unmoved

MOST_PENDING = 10000  # nodes that nobody has read: a loop that never reads is computed in parts of so many
_SMALL = 4096  # elements: read as soon as they are computed, so that one process may look at them alone


class Recompiled(UserWarning):
    """A line of Python whose recorded program was compiled once more."""

    __module__ = "weft"


class State:
    """A variable of the session."""

    def __init__(self, session, name, of_type, initial=None, made_by=None, slot_of=None):
        self.session, self.name, self.type, self.initial, self.made_by, self.slot_of = session, name, of_type, initial, made_by, slot_of
        self.version, self.written, self._node = 0, None, None
        self.info = Info(name, (of_type,), None, (name,))
        self.info.state = self

    @property
    def node(self):
        """That of its number as it is now."""
        if self._node is None:
            self._node = Node(self.info, (), self.type, None, True, self.session)
        return self._node

    def changed(self):
        """Its number is another now: what was computed of the old one has it no more."""
        self.version += 1
        self._node = None

    def build(self, graph):
        """In a graph where it is not yet."""
        if self.slot_of is not None:
            owner = self.session.states[self.slot_of]
            return _call.call("weft_slot_of", owner.find_or_build(graph), self.name[len(owner.name) + 1:], self.type.dims,
                              _call.call("weft_constant_of", 0.0))
        if self.initial is None and self.made_by is not None and self.name not in self.session.kept:
            self.made_by.build(graph, [graph.input(f"beside/{self.name}/{i}", of.dims, of.dtype)
                                       for i, of in enumerate(self.made_by.operands)])
            return graph.find(self.name)
        return graph.variable(self.name, self.type.dims, 0.0 if self.initial is None else self.initial, self.type.dtype)

    def find_or_build(self, graph):
        try:
            return graph.find(self.name)
        except Error:
            return self.build(graph)


class Compiled:
    """One recorded structure as a program: inputs and outputs by place."""

    def __init__(self, program, inputs, outs, states, is_step, is_random):
        self.program, self.inputs, self.outs, self.states = program, [Input(program, value) for value in inputs], outs, states
        self.is_step, self.is_random = is_step, is_random
        self.unread = []  # (weak node, number of the output), of the last run
        self.next_run = None  # the number that the program gives its next run

    def settle(self):
        """Numbers of the last run that somebody may still ask for are read before the next one."""
        for ref, at in self.unread:
            node = ref()
            if node is not None and node.data is None:
                node.data = self.read(at)
                node.home = None
        self.unread = []

    def read(self, at):
        return numpy.asarray(self.program._read_array(self.outs[at]))


class Session:
    """Session("data:2", "batch:data", seed=1): lazy tensors are computed there. `with session:` makes it the current one;
    weft.session(mesh, layout) does for good."""

    current = None

    def __init__(self, mesh="", layout="", seed=0, zero=0, over="batch", **options):
        from . import Layout, Mesh

        self.mesh = mesh if isinstance(mesh, Mesh) else Mesh(mesh)
        self.layout = layout if isinstance(layout, Layout) else Layout(layout or "", zero=zero, over=over)
        _call.call("weft_layout_check", self.layout, self.mesh, None, 0)  # a rule's axis that is not there is told here
        self.seed, self.options = seed, options
        self.seen = set()  # names of dims
        self.states, self.kept = {}, set()  # all variables by name; names of those that the holder has
        self.states_of = {}  # those that a kind of node makes
        self.stored = None  # a checkpoint that was loaded: variables that are made later are filled from it
        self.waits = False  # whether a variable has numbers that its holder has not yet
        self.holder = None  # the program that has the variables
        self.programs, self.pending, self.by_place = {}, [], {}
        self.inputs = {}  # where the numbers of a line's last tensor went, by line and type
        self.is_running = False
        self.steps = self.draws = 0
        self.also = []  # updates of layers (batch norm), for the next step
        self.trace = None  # what is being recorded for jit, or for the body of a scan
        self.lock = new_lock()
        self.outer, self.pid = [], os.getpid()
        self.is_closed = False

    # ---- which one

    @classmethod
    def now(cls):
        if cls.current is None:
            cls.current = cls()
        return cls.current

    def __enter__(self):
        self.outer.append(Session.current)
        Session.current = self
        return self

    def __exit__(self, *given):
        Session.current = self.outer.pop()

    def __repr__(self):
        return f"<weft.Session {str(self.mesh)!r}, {str(self.layout)!r}: {len(self.states)} variables, {len(self.programs)} programs>"

    __reduce__ = unmoved("session")

    def close(self):
        """Its programs and variables go. What was read before stays; anything else of it is refused."""
        self.is_closed = True
        for compiled in self.programs.values():
            for one in compiled.inputs:
                one.let_go()
        self.programs, self.holder, self.pending, self.by_place, self.inputs = {}, None, [], {}, {}
        if Session.current is self:
            Session.current = None

    def check(self):
        if self.is_closed:
            raise Error(1, "this session is closed, and with it its tensors that were not read before; open another by weft.session")
        if self.pid != _values._process:
            raise Error(1, "this session belongs to the process that was forked; ranks are threads, which a fork leaves behind: open a session "
                           "of the child's own, by weft.session")

    @property
    def is_root(self):
        return self.mesh.is_root

    # ---- variables

    def state(self, name, of_type, initial=None, made_by=None):
        state = self.states.get(name)
        if state is None:
            state = self.states[name] = State(self, name, of_type, initial, made_by)
        elif state.type is not of_type:
            raise Error(1, f"variable {name} is {state.type} here, and {of_type} is wanted; give one of them another name")
        return state

    def read_state(self, state):
        self.check()
        with self.lock:
            if state.written is not None:
                return state.written
            if state.name not in self.kept:
                self.flush([state.node])
            return numpy.asarray(self.holder.read(state.name))

    def write_state(self, state, array):
        self.check()
        with self.lock:
            if state.name in self.kept:
                self.holder.write(state.name, array)
            else:
                state.written, self.waits = array, True
            state.changed()

    def _register(self, program):
        """What layers and optimizers have made."""
        lib, names = _call.c.lib, set()
        while lib.weft_variable_at(program.handle, len(names)).id:
            variable = _call.call("weft_variable_at", program, len(names))
            names.add(variable.name)
            if variable.name not in self.states:
                owner = max((n for n in self.states if variable.name.startswith(n + "/")), key=len, default=None)
                slot_of = owner if lib.weft_is_slot(variable._c) else None
                of_type = Type.of(variable.dims, variable.dtype)
                self.states[variable.name] = State(self, variable.name, of_type, slot_of=slot_of)
        return names

    # ---- recording

    def pend(self, node):
        self.pending.append(node)
        if len(self.pending) >= MOST_PENDING and self.trace is None:
            self.flush([], everything=True)

    # ---- computing

    def walk(self, roots):
        """The nodes that the roots need, operands first, and what says how they hang together. What is computed already is an input,
        unless a gradient goes through it."""
        differentiates = self._differentiates(roots)
        mark, order, leaves, key, stack = object(), [], [], [], roots[::-1]
        while stack:
            node = stack.pop()
            if node.mark is mark:
                continue
            operands, info = node.operands, node.info
            known = node.data is not None or node.home is not None
            is_leaf = not operands or info.state is not None or known and not (differentiates and node.needs)
            if not is_leaf:
                waiting = [operand for operand in operands if operand.mark is not mark]
                if waiting:
                    stack.append(node)
                    waiting.reverse()
                    stack += waiting
                    continue
            node.mark, node.at = mark, len(order)
            order.append(node)
            if known and is_leaf and info.state is None:
                leaves.append(node)
                key.append(node.type.leaf.number)
            else:
                key.append(info.number)
                for operand in operands:
                    key.append(-1 - operand.at)
        key.append(0)
        key.extend([root.at for root in roots])
        return order, tuple(key), leaves

    @staticmethod
    def _differentiates(roots):
        """Whether a gradient is among what is to be computed."""
        seen, stack = set(), list(roots)
        while stack:
            node = stack.pop()
            if id(node) in seen or node.data is not None or node.home is not None:
                continue
            seen.add(id(node))
            if node.info.differentiates:
                return True
            stack.extend(node.operands)
        return False

    def flush(self, wanted, effects=(), everything=False):
        """Computes what is wanted and, beside it, what else was recorded and is still held; carries out the effects."""
        self.check()
        with self.lock:
            pending, self.pending = self.pending, []
            outs = [node for node in wanted if node.data is None and node.home is None]
            chosen = {id(node) for node in outs}
            for node in pending:
                ref = node.ref
                if ref is not None and ref() is not None and node.data is None and node.home is None and node.failed is None and id(node) not in chosen:
                    outs.append(node)
            if not outs and not effects:
                return
            try:
                self._compute(outs, list(effects))
            except Error as error:
                for node in outs:
                    node.failed = error
                raise

    def _compute(self, outs, effects):
        order, key, leaves = self.walk(outs + effects)
        compiled = self.programs.get(key)
        if compiled is None:
            try:
                compiled = self.compile(order, key, leaves, outs, effects)
            except Error as error:
                if "compiled another program" not in str(error):
                    raise
                raise Error(1, f"{error}. Reading a tensor computes it, and each process has a part: so all read (print, float, numpy) what one "
                               "reads; read on all, print on one") from None
        self.run(compiled, leaves, outs)

    def run(self, compiled, inputs, outs):
        """Once, with the numbers of these nodes; the outputs are those of `outs`."""
        compiled.settle()
        for one, node in zip(compiled.inputs, inputs):
            if not one.has(node):
                one.fill(node, data_of(node))
                if node.place and one.see():
                    self.inputs[id(node.place[0]), node.place[1], node.type] = one
        if self.waits:
            self._write_states(compiled)
        runs = self._number_run(compiled)
        with Deferred() as ctrl_c:
            self.is_running = True
            try:
                compiled.program._run_once(ctrl_c.may_stop)
            finally:
                self.is_running = False
            compiled.next_run = runs + 1
            self.steps += compiled.is_step
            for state in compiled.changes:
                state.version += 1
                state._node = None
            compiled.unread = []
            for at, node in enumerate(outs):
                if node.info.state is None:
                    self._keep(compiled, at, node)

    def _write_states(self, compiled):
        for state in compiled.states:
            if state.written is not None:
                compiled.program.write(state.name, state.written)
                state.written = None
        self.waits = any(state.written is not None for state in self.states.values())

    def _number_run(self, compiled):
        """Steps are counted by the session, whatever program makes them; other random numbers have numbers of their own."""
        runs = self.steps
        if compiled.is_random and not compiled.is_step:
            self.draws += 1
            runs = (runs + self.draws * 0x9E3779B1) & 0x7FFFFFFF  # far from those of steps
        if compiled.next_run != runs:
            _call.c.lib.weft_set_runs(compiled.program.handle, runs)
        compiled.next_run = None  # until it is over
        return runs

    def _keep(self, compiled, at, node):
        if compiled.is_small[at]:
            node.data = compiled.read(at)
        else:
            node.home = (compiled, at)
            compiled.unread.append((weakref.ref(node), at))
        if not node.needs:
            node.operands = ()  # nobody takes a gradient through it

    # ---- compiling

    def compile(self, order, key, leaves, outs, effects):
        from . import Graph, Program

        if key[0] != "jit":  # which says it itself
            self._say_why(order, outs, effects)
        graph = Graph(self.seed)
        values = {id(node): graph.input(f"input{at}", node.type.dims, node.type.dtype) for at, node in enumerate(leaves)}
        inputs = list(values.values())
        made, kept = self.built(graph, order, values, outs, effects)
        options = dict(self.options)
        if self.holder is not None:
            options["share"] = self.holder
        is_step = any(node.info.is_step for node in effects)
        made += self._of_rules(graph, order, is_step)
        program = Program(self.mesh, self.layout, list({value._c.id: value for value in made + kept}.values()), **options)
        names = self._register(program)
        if names - self.kept:
            self._restore(program, names - self.kept)
            self.holder, self.kept = program, self.kept | names
        compiled = Compiled(program, inputs, made[:len(outs)], [self.states[name] for name in sorted(names)], is_step,
                            any(node.info.is_random for node in order))
        compiled.is_small = [numpy.prod([d.size for d in node.type.dims], dtype=float) <= _SMALL for node in outs]
        compiled.changes = compiled.states if effects else ()
        self.programs[key] = compiled
        return compiled

    def _restore(self, program, names):
        """What a checkpoint has of variables that are new: layers that were called after it was loaded, slots of optimizers."""
        for name in sorted(names):
            if self.stored is not None and name in self.stored.at:
                self.stored.fill(program, name)

    def load(self, folder, step=-1):
        """Variables by their names, those that are there and those that will be; steps count on. All processes call it."""
        state = None
        with self.lock:
            if self.holder is not None:
                opened = _call.call("weft_checkpoints_open", folder, None)
                state = _call.call("weft_checkpoints_restore", opened, self.holder, step)
                step = state.step
            self.stored = Stored(folder, None if step < 0 else step)
            self.steps = self.stored.state.step
            for compiled in self.programs.values():
                compiled.next_run = None  # the holder's is that of the checkpoint
            for one in self.states.values():
                one.written = None
                one.changed()
        return state if state is not None else from_c("weft_checkpoint_state", self.stored.state, None)

    def built(self, graph, order, values, outs, effects):
        """The nodes in a graph that has the inputs, by their ids in `values`: the values of outs and effects, and of all variables."""
        for node in order:
            if id(node) not in values and node.info.state is None:
                values[id(node)] = self._built(graph, node, values)
        made = [self._value(graph, node, values) for node in outs + effects]
        return made, [state.find_or_build(graph) for name, state in list(self.states.items()) if name in self.kept]

    def _of_rules(self, graph, order, is_step):
        """A layout is of all programs of a session, and a small one may lack a dim of its rules: a constant has it. A dim that no program
        of the session had is refused in the first step, as mistyped."""
        here = {dim.name for node in order for of_type in (*node.info.types, node.type) if of_type for dim in of_type.dims}
        here |= {dim.name for name in self.kept for dim in self.states[name].type.dims}
        named = dict.fromkeys(rule.partition(":")[0] for rule in str(self.layout).split(",") if rule)
        lacking = [name for name in named if name not in here and (name in self.seen or not is_step)]
        self.seen |= here
        return [graph.constant(0.0, [(name, 1)]) for name in lacking]

    def _value(self, graph, node, values):
        if id(node) not in values:
            state = node.info.state
            if state.node is not node:
                raise Error(1, f"what is wanted was computed with {state.name} as it was before it changed, and that is gone; take gradients, and "
                               "read, before the step that changes it")
            values[id(node)] = state.find_or_build(graph)
        return values[id(node)]

    def _built(self, graph, node, values):
        """A layer has its variables among its operands, and makes them itself."""
        for at, operand in enumerate(node.operands):
            if operand.info.state is not None:
                if at < len(node.info.operands):
                    self._value(graph, operand, values)
                elif operand.info.state.node is not operand:
                    self._value(graph, operand, {})
        return built_again(graph, node, values)

    # ---- compiled again

    def _say_why(self, order, outs, effects):
        places = tuple(node.place for node in outs + effects)
        before = self.by_place.get(places)
        now = [(node.info, node.type, node.place, node.data is not None or node.home is not None) for node in order]
        self.by_place[places] = now
        if before is None or not places or places[0] is None:
            return
        why = f"{len(now)} ops were recorded, and {len(before)} before"
        for (info, of_type, place, known), (old, old_type, _, was_known) in zip(now, before):
            if of_type is not old_type and not info.operands:
                why = f"a tensor{' of ' + said_place(place) if place else ''} is {of_type} and was {old_type}"
                break
            if info is not old:
                why = self._difference(info, old, place)
                break
        warnings.warn_explicit(f"compiled again for {said_place(places[0])}: {why}", Recompiled, places[0][0].co_filename, places[0][1],
                               registry={})

    @staticmethod
    def _difference(info, old, place):
        where = f" at {said_place(place)}" if place else ""
        if info.name != old.name:
            return f"{info.name}{where} was recorded where {old.name} was before"
        for mine, its in zip(info.said, old.said):
            if mine != its:
                name, number = mine if isinstance(mine, tuple) and len(mine) == 2 else ("it", mine)
                out = f"; weft.tensor({number}) is a number that may change" if isinstance(number, float) else ""
                return f"{info.name}{where} has {name} {number!r} and had {its[1] if isinstance(its, tuple) and len(its) == 2 else its!r}{out}"
        return f"{info.name}{where} has other operands"


def data_of(node):
    """The numbers of a node, computed if they are not yet."""
    if node.data is None:
        if node.failed is not None:
            raise node.failed
        session = node.session
        if session.trace is not None:
            session.trace.refuse(node)
        if node.home is not None and not isinstance(node.home, tuple):
            raise Error(1, f"this tensor, {node.type}, stood for an argument while a function was recorded, and has no numbers; return it")
        if node.home is None:
            session.flush([node])
        if node.data is None:
            with session.lock:  # where another thread may have read it, or let it go
                if node.data is None:
                    home, at = node.home
                    if type(home) is not Input:  # which is there as long as somebody has it
                        session.check()
                    node.data, node.home = home.read(at), None
    return node.data


def built_again(graph, node, values):
    """A recorded node in a graph, by the values of its operands."""
    if type(node.info.build) is int:
        return values[id(node.operands[0])][node.info.build]
    found = []
    with _call.at_place(node.place):
        values_in(node.info.build(graph, [values[id(operand)] for operand in node.operands[:len(node.info.operands)]]), found)
    return found[0] if node.info.shape is None and len(found) == 1 else found

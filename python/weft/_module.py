"""_module: layers, optimizers, containers of them and data as objects.

    class Net(weft.Module):
        def __init__(self):
            self.first = weft.Dense(in_="pixel", out="hidden:64", activation="relu")
            self.last = weft.Dense(in_="hidden", out="digit:10")
        def forward(self, x):
            return self.last(self.first(x))

Variables have the names that C gives them under the path of attributes, first/weight: those of checkpoints.
"""
import types

import numpy

from . import _c as c, _call
from ._convert import without_const
from ._numbers import did_you_mean
from ._record import Info, Node, infos, place_of_user, is_mapped
from ._session import Session
from ._tensor import Tensor, emit, made_of, record, tensor
from ._variable import VariableTensor, _grads, act, variable, variables_of
from ._values import Error


def _options_of(function, ending="_options *"):
    return next((p for p in function["parameters"] if p["name"] == "options" and p["type"].endswith(ending)), None)


def _check_options(kind, options):
    """C's function of this name, whose options have these names."""
    function = c.functions["weft_" + kind]
    fields = [field["name"] for field in c.model["structs"][without_const(_options_of(function)["type"]).rstrip("* ")]["fields"]]
    for option in options:
        if option not in fields and option[:-1] not in fields:
            raise TypeError(f"{kind} has no option {option}{did_you_mean(option, fields)}; there are {', '.join(fields)}")
    return function


def layer_named(name):
    """The layer function of a class name: BatchNorm is batch_norm. None: there is none."""
    snake = "".join("_" + letter.lower() if letter.isupper() and at else letter.lower() for at, letter in enumerate(name))
    for candidate in (snake, name.lower()):
        function = c.functions.get("weft_" + candidate)
        options = function and function["returns"] == "weft_value" and _options_of(function)
        if options:
            return candidate, "weft_optimizer_options" in options["type"]
    return None


def capitals():
    """Names of all layers and optimizers, as classes have them."""
    names = []
    for function in c.functions.values():
        options = function["returns"] == "weft_value" and _call.is_plain(function) and _options_of(function)
        if options:
            fields = [field["name"] for field in c.model["structs"][without_const(options["type"]).rstrip("* ")]["fields"] or ()]
            if "name" in fields or "rate" in fields:
                names.append("".join(word.capitalize() for word in function["name"][5:].split("_")))
    return names


class Named:
    """What has a place in a module: its name is the path of attributes."""

    _parent = _attribute = _path = None

    @property
    def path(self):
        above = self._parent.path if self._parent is not None else ""
        return "/".join(filter(None, (above, self._attribute)))

    def settled(self):
        """The path, which stays once variables have it."""
        if self._path is None:
            object.__setattr__(self, "_path", self.path)
        return self._path


class Layer(Named):
    """A layer of C's by its name: weft.Dense(in_="pixel", out="hidden:64") is Layer("dense", ...). Its variables are made at the first call."""

    def __init__(self, kind, /, name=None, **options):  # an option of a transformer is `self`
        function = _check_options(kind, options)
        self.kind, self.options, self.function = kind, types.MappingProxyType(options), function
        self._attribute, self._nodes = name, {}
        self._called, self._ways_out = f"weft.{kind}", _call.filled(function)

    def __call__(self, /, *given, **more):
        info = None if more or len(given) != 1 else self._nodes.get(getattr(getattr(given[0], "_weft_node", None), "type", None))
        if info is not None and not is_mapped():
            return emit(info, (given[0]._weft_node,), place_of_user())
        path = self._path or self.settled()
        if not path:
            raise Error(1, f"{self.kind}: it has no name; make it an attribute of a weft.Module, or give it one, as name=\"first\"")
        made = record(self.kind, given, {"name": path, **self.options, **more})
        if isinstance(made, Tensor) and len(given) == 1 and isinstance(given[0], Tensor) and not more and not is_mapped():
            info = made._weft_node.info
            if len(info.operands) == 1:  # no option is a tensor
                self._nodes[info.operands[0]] = info
        return self._without_update(made)

    def __getstate__(self):
        return {**self.__dict__, "options": dict(self.options), "_nodes": {}}

    def __setstate__(self, state):
        self.__dict__.update(state, options=types.MappingProxyType(state["options"]))

    def _without_update(self, made):
        """What a layer has to change itself (averages of batch norm) is done with the next step."""
        if "update" not in self._ways_out or not isinstance(made, tuple):
            return made
        update = made[1 + self._ways_out.index("update")]
        if update is not None:
            update._weft_node.session.also.append(update._weft_node)
        return made[0]

    def parameters(self):
        now = Session.now()
        return [VariableTensor(state) for name, state in now.states.items() if name.startswith(self.path + "/") and state.slot_of is None]

    def __repr__(self):
        return f"{self.kind}({', '.join(f'{key}={item!r}' for key, item in self.options.items())})"


class Parameter(Named):
    """A variable of a module, made when it is used: self.w = weft.Parameter("pixel:784 digit:10", weft.normal(0.0, 0.05))."""

    def __init__(self, dims, initial=0.0, dtype="f32"):
        self.dims, self.initial, self.dtype = dims, initial, dtype

    def tensor(self):
        return variable(self.settled(), self.dims, self.initial, self.dtype)

    def parameters(self):
        return [self.tensor()]


class Module(Named):
    """A container: layers, parameters and modules are its attributes, forward says what it computes; model(x) calls it."""

    def __setattr__(self, name, given):
        for at, item in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            if isinstance(item, Named) and name not in ("_parent",):
                item._parent, item._attribute = self, f"{name}{at}" if isinstance(given, (list, tuple)) else name
        if isinstance(given, Parameter):
            self.__dict__.setdefault("_own", {})[name] = given
        else:
            object.__setattr__(self, name, given)

    def __getattr__(self, name):
        mine = self.__dict__.get("_own", {})
        if name not in mine:
            near = did_you_mean(name, [key for key in {**self.__dict__, **mine} if not key.startswith("_")])
            raise AttributeError(f"{type(self).__name__} has no {name}{near}")
        return mine[name].tensor()

    def __call__(self, *given, **options):
        return self.forward(*given, **options)

    def forward(self, *given, **options):
        raise NotImplementedError(f"{type(self).__name__} has no forward; it says what the module computes")

    def _children(self):
        for name, given in vars(self).items():
            if name != "_parent":
                given = given.values() if name == "_own" else given if isinstance(given, (list, tuple)) else [given]
                yield from (item for item in given if isinstance(item, Named))

    def parameters(self):
        """Its variables that are trained or kept, no slots; layers have theirs after the first call."""
        states = Session.now().states
        known = self.__dict__.get("_known")
        if known is None or known[0] is not states or known[1] != len(states):
            found = {one.name: one for child in self._children() for one in child.parameters()}
            known = (states, len(states), list(found.values()))
            object.__setattr__(self, "_known", known)
        return known[2]

    def named_parameters(self):
        return [(one.name, one) for one in self.parameters()]

    def state_dict(self):
        """Arrays by the names that checkpoints have. All processes call it."""
        return {one.name: one.numpy() for one in self.parameters()}

    def load_state_dict(self, arrays):
        mine = dict(self.named_parameters())
        for name, array in arrays.items():
            if name not in mine:
                raise KeyError(f"load_state_dict: {type(self).__name__} has no {name}{did_you_mean(name, mine)}; it has {', '.join(mine) or 'none: call it once'}")
            mine[name].write(array)

    def save(self, folder, step=None, **options):
        """A checkpoint of the session's variables, slots of optimizers too: what C's programs and `weft ckpt` read. step: those that
        the session has made. All processes call it."""
        session = Session.now()
        if session.holder is None:
            raise Error(1, "save: no variable has a number yet; call the module and read what it gives")
        opened = _call.call("weft_checkpoints_open", folder, options or None)
        _call.call("weft_checkpoints_save", opened, session.holder, dict(step=session.steps if step is None else step, seed=session.seed))
        _call.call("weft_checkpoints_wait", opened)

    def load(self, folder, step=-1):
        """Variables of a checkpoint, by their names: at once, or when the module and its optimizer make them; steps count on from it.
        All processes call it."""
        return Session.now().load(folder, step)


class Optimizer:
    """An update rule of C's by its name: weft.Adam(model, rate=1e-3) is Optimizer("adam", ...).

    step(loss): gradients of the loss, and the update, in one program. step(): by what .backward() left in .grad. rate may be set later,
    and be a function that gives a tensor, lambda: weft.warmup_cosine("f32", 1e-3, 100, 2000, 1e-4)."""

    def __init__(self, kind, variables=None, rate=None, **options):
        _check_options(kind, options)
        self.kind, self.variables, self.options, self.rate, self._first = kind, variables, options, rate, rate

    def _mine(self):
        given = self.variables
        return None if given is None else given.parameters() if hasattr(given, "parameters") else list(given)

    def zero_grad(self):
        for state in [one.state for one in self._mine()] if self.variables is not None else list(_grads):
            _grads.pop(state, None)

    def step(self, loss=None):
        """All processes call it: the step is computed here."""
        if loss is not None and not isinstance(loss, Tensor):
            raise TypeError(f"{self.kind}: the loss is {loss!r}; it is a lazy tensor, as weft.mean gives one")
        variables, options, operands = self._mine(), dict(self.options), []
        if loss is None:
            variables = [one for one in (variables if variables is not None else [VariableTensor(state) for state in _grads]) if one.state in _grads]
            if not variables:
                raise Error(1, f"{self.kind}: there are no gradients; call loss.backward() before step(), or step(loss)")
            operands = [one._weft_node for one in variables] + [_grads[one.state] for one in variables]
            for one in variables:
                _grads[one.state].needs = True
        else:
            if variables is not None:
                reached = {state.name for state in variables_of(loss)}
                variables = [one for one in variables if one.name in reached]
            operands = [loss._weft_node, *[one._weft_node for one in variables or ()]]
        has_rate = callable(self.rate) or isinstance(self.rate, Tensor) or self.rate != self._first
        if has_rate:
            rate = self.rate() if callable(self.rate) else self.rate
            dtype = operands[0].type.dtype
            operands.append((rate if isinstance(rate, Tensor) else tensor(rate, dtype=dtype))._weft_node)
        elif self.rate is not None:
            options["rate"] = self.rate
        act(self._node(loss is not None, len(variables or ()), has_rate, options, operands))

    def _node(self, has_loss, n, has_rate, options, operands):
        frozen = tuple((key, repr(item)) for key, item in sorted(options.items()))
        key = (self.kind, "step", has_loss, n, has_rate, frozen, *[node.type for node in operands])
        info = infos.get(key)
        if info is None:
            kind = self.kind

            def build(graph, values):
                ready = dict(options)
                if n:
                    ready["variables"] = values[has_loss:has_loss + n]
                if not has_loss:
                    ready["gradients"] = values[n:2 * n]
                if has_rate:
                    ready["rate_value"] = values[-1]
                return _call.call("weft_" + kind, values[0] if has_loss else None, **ready)

            info = infos[key] = Info(kind, (), build, tuple(sorted(options.items())))
            info.operands, info.is_step, info.differentiates = tuple(node.type for node in operands), True, True
        return Node(info, tuple(operands), None, place_of_user(), False, operands[0].session)

    def __repr__(self):
        return f"{self.kind}({', '.join(f'{key}={item!r}' for key, item in {'rate': self.rate, **self.options}.items())})"


class Batches:
    """for x, y in weft.Batches(64, (images, "batch pixel"), (labels, "batch"), seed=1): an epoch in the order of weft.permute, the same on
    every mesh. What does not fill a batch is left out."""

    def __init__(self, batch, *arrays, seed=0, shuffle=True):
        self.batch, self.arrays, self.seed, self.shuffle, self.epoch = batch, [(numpy.asarray(array), dims) for array, dims in arrays], seed, shuffle, 0
        counts = {len(array) for array, _ in self.arrays}
        if len(counts) != 1 or not 0 < batch <= min(counts):
            raise ValueError(f"Batches: arrays of {', '.join(map(str, sorted(counts)))} samples and batches of {batch}; they have as many, and no fewer")
        self.n = counts.pop()

    def __len__(self):
        return self.n // self.batch

    def __iter__(self):
        key, self.epoch = (self.seed << 20) + self.epoch, self.epoch + 1
        lib = c.lib
        order = numpy.array([lib.weft_permute(key, self.n, i) for i in range(self.n)]) if self.shuffle else numpy.arange(self.n)
        for at in range(len(self)):
            chosen = order[at * self.batch:(at + 1) * self.batch]
            yield tuple(made_of(array[chosen], dims) for array, dims in self.arrays)


class Dataset:
    """A data set of C's as batches of lazy tensors, read ahead by its thread:

        data = weft.Dataset(weft.text_open(path, 64, 1), tokens=("batch:8 seq:64", "i32"), targets=("batch:8 seq:64", "i32"))
        tokens, targets = next(data)
    """

    def __init__(self, opened, **fields):
        from . import Graph, Program
        from ._record import dims_named

        session, graph = Session.now(), Graph()
        self.opened = opened
        self.inputs = [graph.input(name, dims_named(given if isinstance(given, str) else given[0], (), f"Dataset: {name}"),
                                   "i32" if isinstance(given, str) else given[1]) for name, given in fields.items()]
        self.program = Program(session.mesh, session.layout, self.inputs)
        _call.call("weft_dataset_start", opened, self.program)

    def __iter__(self):
        return self

    def __next__(self):
        _call.call("weft_dataset_next", self.opened, self.program)
        return tuple(tensor(self.program.read(one), one.dims, one.dtype) for one in self.inputs)

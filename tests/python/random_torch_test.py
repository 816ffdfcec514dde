"""random_torch_test.py ROOT [SEED | --many N]: random programs of ops, in float64, on up to 8 ranks under random layouts, beside
PyTorch: values, gradients, and gradients of those. What differs is made smaller before it is told.

Exit status 77: PyTorch or numpy is not here (tests/with_torch.py)."""
import os
import random
import sys

root = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "tests"))
from with_torch import np, torch
sys.path.insert(0, os.path.join(root, "python"))
import weft
import random_torch_more  # its ops too
from random_torch_ops import OPS, Named

MESHES = ["", "x:2", "x:3", "x:2,y:2", "x:5", "x:3,y:2", "x:8", "x:2,y:2,z:2"]
NEAR = 1e-9  # of the largest number of a result
MOST_OPS = 24


class Node:
    """An input (op None; n_ids: of so many ids) or a call of an op."""

    def __init__(self, dims, op=None, operands=(), said=None, n_ids=0, seed=0):
        self.dims, self.op, self.operands, self.said, self.n_ids, self.seed = dims, op, list(operands), said, n_ids, seed

    def __str__(self):
        dims = ", ".join(f"{n}:{size}" for n, size in self.dims)
        what = f"{self.op.name}({', '.join(f'v{x}' for x in self.operands)})" if self.op else "ids" if self.n_ids else "input"
        return f"[{dims}] {what}" + (f" {self.said}" if self.said is not None else "")


class Pool:
    """The values of a program that is drawn: what ops choose their operands from."""

    def __init__(self, nodes, dice):
        self.nodes, self.dice = nodes, dice
        sizes = {name: dice.randint(1, 5) for name in "abcd"}
        self.all_dims = tuple(sizes.items())

    @property
    def dims(self):
        return [node.dims if not node.n_ids else () for node in self.nodes if not node.n_ids]

    def number(self, dims):
        self.extra = dims
        return -1

    def joined(self, a, b):
        """The dims of both; -1: those that number() was given."""
        of = [self.extra if x == -1 else self.dims[x] for x in (a, b)]
        return of[0] + tuple(d for d in of[1] if d not in of[0])

    def dim(self, prefix, size):
        """A dim of which the name says the size, so that dims of one name are of one size."""
        return f"{prefix}{size}", size

    def fresh(self, dims):
        return ("fresh", dims, 0)

    def ids(self, dims, n):
        return ("fresh", dims, n)


class Program:
    def __init__(self, seed):
        dice = random.Random(seed)
        self.seed, self.nodes = seed, []
        pool = Pool(self.nodes, dice)
        for _ in range(dice.randint(1, 3)):
            dims = tuple(d for d in pool.all_dims if dice.random() < 0.6)
            self.nodes.append(Node(dims, seed=dice.random()))
        for _ in range(dice.randint(1, MOST_OPS)):
            self._grow(pool, dice)
        self.outputs = [i for i, node in enumerate(self.nodes) if node.op and not self._is_read(i)]
        self.order = dice.choice([0, 1, 1, 2, 2])
        self.mesh = dice.choice(MESHES)
        axes = [axis.split(":")[0] for axis in self.mesh.split(",") if axis]
        self.rules = [(name, dice.sample(axes, dice.randint(1, len(axes)))) for name in sorted({n for x in self.nodes for n, _ in x.dims})
                      if axes and dice.random() < 0.5]
        self.unroll = dice.random() < 0.5

    def _is_read(self, i):
        return any(i in node.operands for node in self.nodes)

    def _grow(self, pool, dice):
        values = [i for i, node in enumerate(self.nodes) if not node.n_ids]
        op = OPS[dice.choice(sorted(OPS))]
        drawn = op.draw(pool, dice)
        if drawn is None or np.prod([size for _, size in drawn[2]] or [1]) > 4000 or len(drawn[2]) > 6:
            return
        operands = []
        for x in drawn[0]:
            if isinstance(x, tuple):
                self.nodes.append(Node(x[1], n_ids=x[2], seed=dice.random()))
                x = len(self.nodes) - 1
            else:
                x = values[x]
            operands.append(x)
        self.nodes.append(Node(drawn[2], op, operands, drawn[1]))

    def layout(self):
        names = {n for i in self.needed() for n, _ in self.nodes[i].dims if not self.nodes[i].op}
        return ",".join(f"{name}:{'+'.join(axis + '?' for axis in axes)}" for name, axes in self.rules if name in names)

    def needed(self):
        wanted = set(self.outputs)
        for i in range(len(self.nodes) - 1, -1, -1):
            if i in wanted:
                wanted |= set(self.nodes[i].operands)
        return sorted(wanted)

    def __str__(self):
        lines = [f"seed {self.seed}, mesh \"{self.mesh}\", layout \"{self.layout()}\", order {self.order}, outputs {self.outputs}"]
        return "\n".join(lines + [f"  v{i} = {self.nodes[i]}" for i in self.needed()])


# ---- what it gives ------------------------------------------------------------------------------------------------------


def array_of(node, breath):
    shape = [size for _, size in node.dims]
    dice = np.random.default_rng(int(node.seed * 2**48))
    if node.n_ids:
        return dice.integers(0, node.n_ids, shape)
    array = dice.normal(size=shape)
    return array * (1 + breath * np.random.default_rng(int(node.seed * 2**48) + 1).normal(size=shape))


def weight(dims, number):
    """The shares with which elements of results are added to what gradients are taken of: by names, whatever their order."""
    order = sorted(dims)
    array = np.cos(np.arange(np.prod([size for _, size in order] or [1])) * 0.7 + number).reshape([size for _, size in order])
    return array, order


def in_memory(tensor):
    """Its elements, of zeros that PyTorch keeps without memory too."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach()).numpy()


def by_torch(program, breath=0.0):
    values, inputs = {}, []
    for i in program.needed():
        node = program.nodes[i]
        if node.op:
            values[i] = node.op.torch([values[x] for x in node.operands], node.said)
            continue
        tensor = torch.from_numpy(np.asarray(array_of(node, breath)))
        if not node.n_ids:
            tensor.requires_grad_()
            inputs.append((i, tensor))
        values[i] = Named(tensor, [n for n, _ in node.dims])
    results = [values[i] for i in program.outputs]
    found, now = list(results), results
    for order in range(program.order):
        loss = 0
        for k, y in enumerate(now):
            array, dims = weight([(n, y.tensor.shape[y.at(n)]) for n in y.names], k + order)
            loss = loss + (y.along([n for n, _ in dims]) * torch.from_numpy(array)).sum()
        if loss.requires_grad:
            gradients = torch.autograd.grad(loss, [t for _, t in inputs], create_graph=True, allow_unused=True)
        else:
            gradients = [None] * len(inputs)
        now = [Named(torch.zeros_like(t) if g is None else g, values[i].names) for g, (i, t) in zip(gradients, inputs)]
        found += now
    return [(in_memory(y.tensor), y.names) for y in found]


def by_weft(program, mesh, layout):
    graph, values, inputs = weft.Graph(seed=1), {}, []
    for i in program.needed():
        node = program.nodes[i]
        if node.op:
            values[i] = node.op.weft([values[x] for x in node.operands], node.said)
            continue
        values[i] = graph.input(f"v{i}", list(node.dims), "i32" if node.n_ids else "f64")
        if not node.n_ids:
            inputs.append(values[i])
    results = [values[i] for i in program.outputs]
    found, now, shares = list(results), results, []
    for order in range(program.order):
        loss = None
        for k, y in enumerate(now):
            array, dims = weight(y.dims, k + order)
            share = graph.input(f"share{order}_{k}", [tuple(d) for d in dims], "f64")
            shares.append((share, array))
            one = weft.einsum([], y, share)
            loss = one if loss is None else loss + one
        now = weft.gradients(loss, inputs, zeros_allowed=True)
        found += now
    compiled = weft.Program(weft.Mesh(mesh), layout, found, unroll=int(program.unroll))
    for i in program.needed():
        if not program.nodes[i].op:
            compiled.write(values[i], np.asarray(array_of(program.nodes[i], 0), "i4" if program.nodes[i].n_ids else "f8"))
    for share, array in shares:
        compiled.write(share, array)
    compiled.run()
    return [(np.asarray(compiled.read(y)), [d.name for d in y.dims]) for y in found]


def apart(ours, theirs):
    """How far, by the largest of theirs, and at which result; infinite: of other dims, or a number beside none."""
    most = (0.0, 0)
    for k, ((a, names), (b, others)) in enumerate(zip(ours, theirs)):
        if sorted(names) != sorted(others):
            return float("inf"), k
        b = np.transpose(b, [others.index(n) for n in names])
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            continue
        with np.errstate(all="ignore"):
            off = np.abs(a - b)[~same].max() / max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0))
        most = max(most, (off if np.isfinite(off) else float("inf"), k))
    return most


def judged(program):
    """None: right; "": PyTorch's own result moves as far by a breath; else what differs."""
    theirs = by_torch(program)
    try:
        ours = by_weft(program, program.mesh, program.layout())
    except weft.Error as error:
        return f"refused: {error}"
    off, k = apart(ours, theirs)
    if off <= NEAR:
        return None
    moved = max(apart(by_torch(program, breath), theirs)[0] for breath in (1e-11, -3e-12))
    if off <= 100 * moved or moved > 1e-4:
        return ""
    alone, _ = apart(by_weft(program, "", ""), theirs)
    return f"result {k} is {off:.3g} off; on one rank {alone:.3g}; a breath moves it by {moved:.3g}"


# ---- the smallest that is wrong -----------------------------------------------------------------------------------------


def changed(program, **fields):
    copy = object.__new__(Program)
    copy.__dict__.update(program.__dict__, **fields)
    return copy


def smaller(program):
    """Programs that are one step simpler."""
    for output in program.outputs:
        if len(program.outputs) > 1:
            yield changed(program, outputs=[output])
    for i in program.outputs:
        operands = [x for x in program.nodes[i].operands if program.nodes[x].op]
        if len(program.outputs) == 1 and operands:
            yield changed(program, outputs=operands[:1])
    for i in program.needed():
        if program.nodes[i].op and i not in program.outputs:
            nodes = list(program.nodes)
            nodes[i] = Node(nodes[i].dims, seed=(i + 1) / 1000)
            yield changed(program, nodes=nodes)
    if program.order:
        yield changed(program, order=program.order - 1)
    for k in range(len(program.rules)):
        yield changed(program, rules=program.rules[:k] + program.rules[k + 1:])
    if program.mesh:
        yield changed(program, mesh="", rules=[])


def shrunk(program, is_wrong):
    while True:
        least = next((p for p in smaller(program) if is_wrong(p)), None)
        if least is None:
            return program
        program = least


def test_what_differs_is_made_smaller():
    """As if an op were wrong wherever its result is used."""
    for seed in range(1, 10000):
        program = Program(seed)

        def has_tanh(p):
            return any(p.nodes[i].op and p.nodes[i].op.name == "tanh" for i in p.needed())

        if len(program.needed()) > 8 and has_tanh(program):
            least = shrunk(program, has_tanh)
            assert len(least.needed()) == 2 and not least.mesh and not least.order, least
            return
    raise AssertionError("no program with a tanh")


def test_every_op_is_drawn(n=3000):
    drawn = {node.op.name for seed in range(n) for node in Program(seed).nodes if node.op}
    assert drawn == set(OPS), set(OPS) - drawn
    return f"{len(OPS)} ops"


def test_programs_are_what_pytorch_computes(first, last):
    n_right, n_moved, wrong = 0, 0, 0
    for seed in range(first, last + 1):
        program = Program(seed)
        if not program.outputs:
            continue
        said = judged(program)
        n_right += said is None
        n_moved += said == ""
        if said:
            least = shrunk(program, lambda p: bool(judged(p)))
            print(f"{said}\n{least}\n  {judged(least)}", flush=True)
            wrong += 1
    assert not wrong, f"{wrong} programs differ"
    assert n_moved <= max(2, n_right // 20), f"{n_moved} of {n_right} are moved by a breath"
    return f"{n_right} programs as by PyTorch, {n_moved} that a breath moves as far"


# ---- long sums ----------------------------------------------------------------------------------------------------------


def long_numbers(n):
    dice = np.random.default_rng(1)
    sizes = np.exp(dice.uniform(-9.2, 9.2, n))
    yield "from 0 to 1", dice.random(n, "f4")
    yield "normal", dice.normal(size=n).astype("f4")
    yield "from 1e-4 to 1e4", sizes.astype("f4")
    yield "those, of either sign", (sizes * np.sign(dice.normal(size=n))).astype("f4")
    yield "1000 and normal", (1000 + dice.normal(size=n)).astype("f4")


def reduced_by_weft(x, y, mesh):
    dim, first = weft.Dim("n", len(x)), ("first", 1000)
    graph = weft.Graph()
    a, b = graph.input("a", [dim]), graph.input("b", [dim])
    normed = weft.layer_norm(a, graph.constant(1.0, [dim]), graph.constant(0.0, [dim]), dim)
    found = [weft.sum([], a), weft.mean(a), weft.variance([], a, 0.0), weft.einsum([], a, b), weft.slice(normed, dim, 0, first)]
    program = weft.Program(weft.Mesh(mesh), "n:x" if mesh else "", found)
    program.write(a, x)
    program.write(b, y)
    program.run()
    return [program.read(value) for value in found]


def reduced_by_torch(x, y):
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    normed = torch.nn.functional.layer_norm(a, a.shape)[:1000].numpy()
    return [a.sum().item(), a.mean().item(), a.var(correction=0).item(), (a @ b).item(), normed]


def test_long_sums_in_f32_are_as_exact_as_pytorchs():
    """Of 10 million, by the sum of sizes: no farther off than PyTorch's, or a rounding or two of f32."""
    rows = []
    for name, x in long_numbers(10_000_000):
        y = np.random.default_rng(2).normal(size=len(x)).astype("f4")
        a, b = x.astype("f8"), y.astype("f8")
        exact = [a.sum(), a.mean(), a.var(), a @ b, ((a - a.mean()) / np.sqrt(a.var() + 1e-5))[:1000]]
        sizes = [np.abs(a).sum(), np.abs(a).mean(), a.var(), np.abs(a * b).sum(), max(1, abs(a.mean()) / a.std())]
        theirs = [np.abs(v - e).max() / s for v, e, s in zip(reduced_by_torch(x, y), exact, sizes)]
        for mesh in ("", "x:2", "x:8"):
            ours = [np.abs(v - e).max() / s for v, e, s in zip(reduced_by_weft(x, y, mesh), exact, sizes)]
            rows.append(f"  {name}, {mesh or 'one rank'}: " + ", ".join(f"{w:.0e} ({t:.0e})" for w, t in zip(ours, theirs)))
            assert all(w <= max(t, 2.4e-7) for w, t in zip(ours, theirs)), rows[-1]
    return "sum, mean, variance, dot, layer norm (PyTorch's)\n" + "\n".join(rows)


words = sys.argv[2:]
first, last = (1, int(words[1])) if words[:1] == ["--many"] else (int(words[0]), int(words[0])) if words else (1, 1000)
print(test_what_differs_is_made_smaller.__name__, test_what_differs_is_made_smaller() or "")
print(test_every_op_is_drawn.__name__, test_every_op_is_drawn())
print(test_long_sums_in_f32_are_as_exact_as_pytorchs.__name__, test_long_sums_in_f32_are_as_exact_as_pytorchs())
print(test_programs_are_what_pytorch_computes.__name__, test_programs_are_what_pytorch_computes(first, last))

"""random_torch_ops.py: ops and compositions of weft/ops.h beside what PyTorch computes, both on tensors whose dims have names: what
random_torch_test.py draws from.

An op is drawn of the values that a program has (draw), built by Weft, and done by PyTorch. A value is a pair here: PyTorch's
tensor and the names of its dims. What grows without bounds, or is defined for some numbers alone, is first brought into range, by
the same ops on both sides."""
import torch
import torch.nn.functional as F

import weft


class Named:
    """A tensor of PyTorch whose dims have names."""

    def __init__(self, tensor, names):
        self.tensor, self.names = tensor, tuple(names)

    def at(self, name):
        return self.names.index(name)

    def along(self, names):
        """Its elements with dims in that order, of size 1 those that it has not."""
        order = [self.at(n) for n in names if n in self.names]
        shape = [self.tensor.shape[self.at(n)] if n in self.names else 1 for n in names]
        return self.tensor.permute(order).reshape(shape)

    def without(self, *names):
        return tuple(n for n in self.names if n not in names)


def together(*values):
    names = []
    for value in values:
        names += [n for n in value.names if n not in names]
    return [value.along(names) for value in values], names


# ---- what is drawn ------------------------------------------------------------------------------------------------------


class Op:
    """draw(pool, dice): operands' numbers, what the call says, the result's dims; None: not of these values.
    weft(values, said), torch(named, said): the call on either side."""

    def __init__(self, name, draw, by_weft, by_torch):
        self.name, self.draw, self.weft, self.torch = name, draw, by_weft, by_torch


OPS = {}


def add(name, draw, by_weft, by_torch):
    OPS[name] = Op(name, draw, by_weft, by_torch)


def some(pool, dice):
    return dice.choice(range(len(pool.dims)))


def with_dims(pool, dice, n=1):
    """A value that has so many dims."""
    found = [i for i, dims in enumerate(pool.dims) if len(dims) >= n]
    return dice.choice(found) if found else None


def with_one_dim(pool, dice):
    """A value, one of its dims, and the others; None: no value has a dim."""
    x = with_dims(pool, dice)
    if x is None:
        return None
    dim = dice.choice(pool.dims[x])
    return x, dim, tuple(d for d in pool.dims[x] if d != dim)


def has_name(dims, name):
    return name in [n for n, _ in dims]


# Into range, on both sides.
def tame(x):
    return weft.tanh(x) * 1.5 if isinstance(x, weft.Value) else torch.tanh(x) * 1.5


def positive(x):
    return weft.abs(x) + 0.5 if isinstance(x, weft.Value) else torch.abs(x) + 0.5


def small(x):
    return weft.tanh(x) * 0.9 if isinstance(x, weft.Value) else torch.tanh(x) * 0.9


def as_is(x):
    return x


# ---- element by element -------------------------------------------------------------------------------------------------


def one(name, by_torch, into=as_is, said=()):
    def draw(pool, dice):
        x = some(pool, dice)
        return [x], None, pool.dims[x]

    add(name, draw, lambda v, _: getattr(weft, name)(into(v[0]), *said), lambda n, _: Named(by_torch(into(n[0].tensor)), n[0].names))


one("neg", torch.neg)
one("exp", torch.exp, tame)
one("log", torch.log, positive)
one("sqrt", torch.sqrt, positive)
one("rsqrt", torch.rsqrt, positive)
one("square", torch.square, tame)
one("tanh", torch.tanh)
one("sin", torch.sin)
one("cos", torch.cos)
one("relu", torch.relu)
one("gelu", lambda x: F.gelu(x, approximate="tanh"))
one("sigmoid", torch.sigmoid)
one("silu", F.silu)
one("hardswish", F.hardswish)
one("softplus", lambda x: torch.logaddexp(x, torch.zeros_like(x)))
one("elu", lambda x: F.elu(x, 0.7), said=(0.7,))
one("leaky_relu", lambda x: F.leaky_relu(x, 0.1), said=(0.1,))
one("selu", F.selu)
one("erf", torch.erf)
one("erfinv", torch.erfinv, small)
one("expm1", torch.expm1, tame)
one("log1p", torch.log1p, positive)
one("reciprocal", torch.reciprocal, positive)
one("abs", torch.abs)
one("sign", torch.sign)
one("floor", torch.floor)
one("ceil", torch.ceil)
one("round", torch.round)
one("clamp", lambda x: torch.clamp(x, -0.8, 0.9), said=(-0.8, 0.9))
one("scale", lambda x: x * -1.7, said=(-1.7,))
one("shift", lambda x: x + 0.3, said=(0.3,))
one("stop_gradient", torch.detach)
one("settle", as_is)
one("cast", as_is, said=("f64",))


def two(name, by_torch, of_a=as_is, of_b=as_is, said=(), is_truth=False):
    def draw(pool, dice):
        a, b = some(pool, dice), some(pool, dice)
        return [a, b], None, pool.joined(a, b)

    def by_weft(v, _):
        y = getattr(weft, name)(of_a(v[0]), of_b(v[1]), *said)
        return weft.cast(y, "f64") if is_truth else y

    def of_torch(n, _):
        (a, b), names = together(*n)
        y = by_torch(of_a(a), of_b(b))
        return Named(y.double() if is_truth else y, names)

    add(name, draw, by_weft, of_torch)


two("add", torch.add)
two("sub", torch.sub)
two("mul", torch.mul, of_b=tame)
two("div", torch.div, of_b=positive)
# Of equal ones a's derivative is taken (docs/ops.md); PyTorch halves it.
two("maximum", lambda a, b: torch.where(a >= b, a, b))
two("minimum", lambda a, b: torch.where(a <= b, a, b))
two("pow", torch.pow, positive, small)
two("mod", torch.remainder, of_b=positive)
two("floor_div", lambda a, b: torch.floor((a - torch.remainder(a, b)) / b + 0.5).detach(), of_b=positive)
two("huber", lambda a, b: F.huber_loss(*torch.broadcast_tensors(a, b), reduction="none", delta=0.7), said=(0.7,))
two("sigmoid_cross_entropy", lambda a, b: F.softplus(a, threshold=50) - a * b, of_b=lambda x: small(x))
for truth, function in dict(less=torch.lt, less_equal=torch.le, greater=torch.gt, greater_equal=torch.ge, equal=torch.eq,
                            not_equal=torch.ne).items():
    two(truth, function, is_truth=True)


def is_above(x):
    """1 where x is above 0.1."""
    return weft.greater(x, 0.1 + weft.scale(x, 0.0)) if isinstance(x, weft.Value) else x > 0.1


for truth, function in dict(logical_and=torch.logical_and, logical_or=torch.logical_or, logical_xor=torch.logical_xor).items():
    two(truth, function, is_above, is_above, is_truth=True)


def draw_where(pool, dice):
    operands = [some(pool, dice) for _ in range(3)]
    dims = pool.joined(pool.number(pool.joined(operands[0], operands[1])), operands[2])
    return operands, None, dims


def torch_where(n, _):
    (c, a, b), names = together(*n)
    return Named(torch.where(is_above(c), a, b), names)


add("where", draw_where, lambda v, _: weft.where(is_above(v[0]), v[1], v[2]), torch_where)


def draw_outer(pool, dice):
    a, b = some(pool, dice), some(pool, dice)
    if {n for n, _ in pool.dims[a]} & {n for n, _ in pool.dims[b]}:
        return None
    return [a, b], None, pool.joined(a, b)


add("outer", draw_outer, lambda v, _: weft.outer(*v), lambda n, _: Named(torch.mul(*together(*n)[0]), together(*n)[1]))


# ---- reductions ---------------------------------------------------------------------------------------------------------


def over_some(name, by_torch, into=as_is, said=(), fresh=False):
    """Over dims that the result lacks. fresh: of numbers of which no two are the same."""

    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        dims = pool.dims[x]
        gone = dice.sample(range(len(dims)), dice.randint(1, len(dims)))
        kept = tuple(d for i, d in enumerate(dims) if i not in gone)
        return [x] + ([pool.fresh(dims)] if fresh else []), kept, kept

    def by_weft(v, kept):
        return getattr(weft, name)(list(kept), into(v[0] + v[1] if fresh else v[0]), *said)

    def of_torch(n, kept):
        kept = [name for name, _ in kept]
        x = together(*n)[0][0] + together(*n)[0][1] if fresh else n[0].tensor
        y = by_torch(into(x), [i for i, name in enumerate(n[0].names) if name not in kept])
        return Named(y, [name for name in n[0].names if name in kept])

    add(name, draw, by_weft, of_torch)


def prod_over(x, dims):
    for d in sorted(dims, reverse=True):
        x = x.prod(d)
    return x


over_some("sum", lambda x, dims: x.sum(dims))
over_some("mean_over", lambda x, dims: x.mean(dims))
over_some("max", lambda x, dims: x.amax(dims), fresh=True)
over_some("min", lambda x, dims: x.amin(dims), fresh=True)
over_some("prod", prod_over, tame)
over_some("variance", lambda x, dims: x.var(dims, correction=0), said=(0,))


def along(name, by_torch, into=as_is, fresh=False, keeps=True, extra=None, by_weft=None):
    """Along one dim. extra(dice, size): what the call says besides. keeps: the result has the dim."""

    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        dims = pool.dims[x]
        dim = dice.choice(dims)
        said = extra(dice, dim[1]) if extra else ()
        result = dims if keeps else tuple(d for d in dims if d != dim)
        return [x] + ([pool.fresh(dims)] if fresh else []), (dim, said), result

    def of_weft(v, said):
        x = into(v[0] + v[1] if fresh else v[0])
        return by_weft(x, *said) if by_weft else getattr(weft, name)(x, said[0], *said[1])

    def of_torch(n, said):
        x = into(together(*n)[0][0] + together(*n)[0][1] if fresh else n[0].tensor)
        y = by_torch(x, n[0].at(said[0][0]), *said[1])
        return Named(y, n[0].names if keeps else n[0].without(said[0][0]))

    add(name, draw, of_weft, of_torch)


def shifted(x, dim, by):
    y = torch.zeros_like(x)
    n = x.shape[dim]
    if abs(by) >= n:
        return y + 0 * x
    part = x.narrow(dim, max(0, -by), n - abs(by))
    return torch.cat([torch.zeros_like(x.narrow(dim, 0, by)), part], dim) if by >= 0 else \
        torch.cat([part, torch.zeros_like(x.narrow(dim, 0, -by))], dim)


def cumulated(function):
    def apply(x, dim, exclusive, reverse):
        x = x.flip(dim) if reverse else x
        y = function(x, dim)
        if exclusive:
            first = torch.full_like(y.narrow(dim, 0, 1), 0.0 if function is torch.cumsum else 1.0)
            y = torch.cat([first, y.narrow(dim, 0, y.shape[dim] - 1)], dim)
        return y.flip(dim) if reverse else y

    return apply


def two_truths(dice, _):
    return dice.random() < 0.4, dice.random() < 0.4


along("softmax", torch.softmax)
along("log_softmax", torch.log_softmax)
along("logsumexp", torch.logsumexp, keeps=False)
along("z_loss", lambda x, dim: torch.logsumexp(x, dim) ** 2, keeps=False)
along("cumsum", cumulated(torch.cumsum), extra=two_truths)
along("cumprod", cumulated(torch.cumprod), tame, extra=two_truths)
along("cummax", lambda x, dim, *_: torch.cummax(x, dim)[0], fresh=True, extra=lambda *_: (False, False))
along("cummin", lambda x, dim, *_: torch.cummin(x, dim)[0], fresh=True, extra=lambda *_: (False, False))
along("sort", lambda x, dim, down: torch.sort(x, dim, down)[0], fresh=True, extra=lambda dice, _: (dice.random() < 0.5,),
      by_weft=lambda x, dim, said: weft.sort(x, dim, *said)[0])
along("argsort", lambda x, dim, down: torch.argsort(x, dim, down).double(), fresh=True, extra=lambda dice, _: (dice.random() < 0.5,),
      by_weft=lambda x, dim, said: weft.cast(weft.argsort(x, dim, *said), "f64"))
along("argmax", lambda x, dim: x.argmax(dim).double(), fresh=True, keeps=False,
      by_weft=lambda x, dim, _: weft.cast(weft.argmax(x, dim), "f64"))
along("argmin", lambda x, dim: x.argmin(dim).double(), fresh=True, keeps=False,
      by_weft=lambda x, dim, _: weft.cast(weft.argmin(x, dim), "f64"))
along("quantile", lambda x, dim, q: torch.quantile(x, q, dim), fresh=True, keeps=False,
      extra=lambda dice, _: (dice.choice([0.0, 0.21, 0.5, 0.83, 1.0]),))
along("median", lambda x, dim: torch.quantile(x, 0.5, dim), fresh=True, keeps=False)
along("flip", lambda x, dim: x.flip(dim))
along("roll", lambda x, dim, by: x.roll(by, dim), extra=lambda dice, n: (dice.randint(-n, n),))
along("shift_along", shifted, extra=lambda dice, n: (dice.randint(1 - n, n - 1),))
along("smooth_labels", lambda x, dim, by: (1 - by) * x + by * x.mean(dim, keepdim=True), extra=lambda *_: (0.3,))


def normalized(x, dim):
    return (x - x.mean(dim, keepdim=True)) / torch.sqrt(x.var(dim, correction=0, keepdim=True) + 1e-3)


along("normalize", lambda x, dim: normalized(x, dim), by_weft=lambda x, dim, _: weft.normalize(x, [dim], 1e-3))


def scaled_along(name, by_torch, n_gains):
    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        dim = dice.choice(pool.dims[x])
        return [x] + [pool.fresh((dim,)) for _ in range(n_gains)], dim, pool.dims[x]

    def of_torch(n, dim):
        x, *gains = together(*n)[0]
        return Named(by_torch(x, n[0].at(dim[0]), *gains), n[0].names)

    add(name, draw, lambda v, dim: getattr(weft, name)(*v, dim), of_torch)


scaled_along("layer_norm", lambda x, dim, gain, bias: (x - x.mean(dim, keepdim=True)) / torch.sqrt(
    x.var(dim, correction=0, keepdim=True) + 1e-5) * gain + bias, 2)
scaled_along("rms_norm", lambda x, dim, gain: x / torch.sqrt((x * x).mean(dim, keepdim=True) + 1e-5) * gain, 1)


def pair_along(name, by_torch, of_a, of_b):
    """Of two values with the same dims, over one of them."""

    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        dims, dim = pool.dims[x], dice.choice(pool.dims[x])
        return [x, pool.fresh(dims)], dim, tuple(d for d in dims if d != dim)

    def of_torch(n, dim):
        a, b = together(*n)[0]
        at = n[0].at(dim[0])
        return Named(by_torch(of_a(a, at), of_b(b, at), at), n[0].without(dim[0]))

    add(name, draw, lambda v, dim: getattr(weft, name)(of_a(v[0], dim), of_b(v[1], dim), dim), of_torch)


def in_front(x, _):
    return x


def softmax(x, dim):
    return weft.softmax(x, dim) if isinstance(x, weft.Value) else torch.softmax(x, dim)


def log_softmax(x, dim):
    return weft.log_softmax(x, dim) if isinstance(x, weft.Value) else torch.log_softmax(x, dim)


pair_along("cosine", lambda a, b, dim: (a * b).sum(dim) / (a.norm(dim=dim).clamp_min(1e-8) * b.norm(dim=dim).clamp_min(1e-8)),
           lambda x, _: tame(x) + 0.1, in_front)
pair_along("kl_divergence", lambda a, b, dim: (a.exp() * (a - b)).sum(dim), log_softmax, log_softmax)
pair_along("soft_cross_entropy", lambda a, b, dim: -(b * torch.log_softmax(a, dim)).sum(dim), in_front, softmax)


# ---- products -----------------------------------------------------------------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def product(name, n_operands):
    def draw(pool, dice):
        operands = [some(pool, dice) for _ in range(n_operands)]
        dims = ()
        for x in operands:
            dims += tuple(d for d in pool.dims[x] if d not in dims)
        kept = tuple(d for d in dims if dice.random() < 0.6)
        return operands, kept, kept

    def by_weft(v, kept):
        v = [tame(x) for x in v]
        return weft.einsum(list(kept), *v) if name == "einsum" else weft.einsum_n(list(kept), v)

    def of_torch(n, kept):
        letter = {name: LETTERS[i] for i, name in enumerate(sorted({name for x in n for name in x.names}))}
        text = ",".join("".join(letter[name] for name in x.names) for x in n) + "->" + "".join(letter[d[0]] for d in kept)
        return Named(torch.einsum(text, *(tame(x.tensor) for x in n)), [d[0] for d in kept])

    add(name, draw, by_weft, of_torch)


product("einsum", 2)
product("einsum_n", 3)


def draw_attention(pool, dice):
    query, memory, feature = pool.dim("q", dice.randint(1, 5)), pool.dim("m", dice.randint(1, 5)), ("f4", 4)
    return [pool.fresh((query, feature)), pool.fresh((memory, feature)), pool.fresh((memory, feature))], \
        (query, memory, feature), (query, feature)


def torch_attention(n, said):
    query, memory, feature = (d[0] for d in said)
    q, k, v = (x.along([name, feature]) for x, name in zip(n, (query, memory, memory)))
    return Named(torch.softmax(q @ k.T / 2, 1) @ v, [query, feature])


add("attention", draw_attention, lambda v, said: weft.attention(*v, *said, False), torch_attention)


def draw_windows(pool, dice, n_taps, stride):
    """A dim, and what windows of so many elements make of it."""
    n = dice.randint(4, 7)
    return pool.dim("w", n), pool.dim("v", (n - n_taps) // stride + 1)


def draw_conv(pool, dice):
    tap, stride, channel, made = pool.dim("t", dice.randint(1, 3)), dice.randint(1, 2), ("c2", 2), ("n3", 3)
    wide, out = draw_windows(pool, dice, tap[1], stride)
    return [pool.fresh((channel, wide)), pool.fresh((made, channel, tap))], (wide, tap, made, stride, out), (made, out)


def weft_conv(v, said):
    wide, tap, made, stride, out = said
    return weft.conv([made, out], v[0], v[1], [weft.spatial_valid(wide, tap, out[0], stride, 1)])


def torch_conv(n, said):
    wide, tap, made, stride, out = said
    x, w = n[0].along(["c2", wide[0]]), n[1].along(["n3", "c2", tap[0]])
    return Named(F.conv1d(x[None], w, stride=stride)[0], ["n3", out[0]])


add("conv", draw_conv, weft_conv, torch_conv)


def draw_pool(pool, dice):
    size, stride = dice.randint(1, 3), dice.randint(1, 2)
    wide, out = draw_windows(pool, dice, size, stride)
    return [pool.fresh((("c2", 2), wide))], (wide, size, stride, out), (("c2", 2), out)


def pool_of(name, by_torch, *said):
    add(name, draw_pool,
        lambda v, w: getattr(weft, name)(v[0], [weft.spatial_valid(w[0], ("pool", w[1]), w[3][0], w[2], 1)], *said),
        lambda n, w: Named(by_torch(n[0].along(["c2", w[0][0]])[None], w[1], w[2])[0], ["c2", w[3][0]]))


pool_of("max_pool", F.max_pool1d)
pool_of("average_pool", F.avg_pool1d, True)


def draw_solve(pool, dice):
    row, column, side = ("row", 3), ("column", 3), pool.dim("b", dice.randint(1, 3))
    return [pool.fresh((row, column)), pool.fresh((row, side))], (row, column), (column, side)


def weft_solve(v, said):
    row, column = said
    unit = weft.one_hot(weft.iota(v[0].graph, "i32", row), column, "f64")
    return weft.solve(v[0] * 0.3 + unit * 2, v[1], row, column)


def torch_solve(n, _):
    a, side = n[0].along(["row", "column"]) * 0.3 + 2 * torch.eye(3, dtype=torch.float64), n[1].without("row")[0]
    return Named(torch.linalg.solve(a, n[1].along(["row", side])), ["column", side])


add("solve", draw_solve, weft_solve, torch_solve)


# ---- shapes -------------------------------------------------------------------------------------------------------------


def draw_transpose(pool, dice):
    x = some(pool, dice)
    dims = list(pool.dims[x])
    dice.shuffle(dims)
    return [x], tuple(dims), tuple(dims)


add("transpose", draw_transpose, lambda v, dims: weft.transpose(v[0], list(dims)),
    lambda n, dims: Named(n[0].along([d[0] for d in dims]), [d[0] for d in dims]))


def draw_broadcast(pool, dice):
    x = some(pool, dice)
    more = tuple(d for d in pool.all_dims if d[0] not in [n for n, _ in pool.dims[x]] and dice.random() < 0.4)
    dims = list(pool.dims[x] + more)
    dice.shuffle(dims)
    return [x], tuple(dims), tuple(dims)


add("broadcast_to", draw_broadcast, lambda v, dims: weft.broadcast_to(v[0], list(dims)),
    lambda n, dims: Named(n[0].along([d[0] for d in dims]).expand([d[1] for d in dims]), [d[0] for d in dims]))


def of_one_dim(name, said_of, by_weft, by_torch):
    """said_of(dice, dim, pool): what the call says, the dims that stand for the dim; None: not this one."""

    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        dims = list(pool.dims[x])
        at = dice.randrange(len(dims))
        found = said_of(dice, dims[at], pool)
        if found is None or any(d[0] in [n for n, _ in dims] for d in found[1]):
            return None
        return [x], (dims[at], found[0], tuple(found[1])), tuple(dims[:at] + list(found[1]) + dims[at + 1:])

    def of_torch(n, said):
        dim, rest, new = said
        at = n[0].at(dim[0])
        names = list(n[0].names)
        return Named(by_torch(n[0].tensor, at, rest, new), names[:at] + [d[0] for d in new] + names[at + 1:])

    add(name, draw, lambda v, said: by_weft(v[0], *said), of_torch)


def draw_slice(dice, dim, pool):
    begin = dice.randrange(dim[1])
    return begin, [pool.dim("s", dice.randint(1, dim[1] - begin))]


of_one_dim("slice", draw_slice, lambda x, dim, begin, new: weft.slice(x, dim, begin, new[0]),
           lambda x, at, begin, new: x.narrow(at, begin, new[0][1]))


def draw_steps(dice, dim, pool):
    step = dice.choice([-2, -1, 2, 3])
    begin = dice.randrange(dim[1])
    most = (dim[1] - 1 - begin) // step + 1 if step > 0 else begin // -step + 1
    return (begin, step), [pool.dim("s", dice.randint(1, most))]


of_one_dim("slice_step", draw_steps, lambda x, dim, said, new: weft.slice_step(x, dim, *said, new[0]),
           lambda x, at, said, new: x.index_select(at, torch.tensor([said[0] + said[1] * i for i in range(new[0][1])])))


def draw_pad(dice, dim, pool):
    before, behind = dice.randint(0, 2), dice.randint(0, 2)
    return before, [pool.dim("s", dim[1] + before + behind)]


def padded(x, at, before, new):
    front, back = list(x.shape), list(x.shape)
    front[at], back[at] = before, new[0][1] - before - x.shape[at]
    return torch.cat([torch.full(front, 0.25, dtype=x.dtype), x, torch.full(back, 0.25, dtype=x.dtype)], at)


of_one_dim("pad", draw_pad, lambda x, dim, before, new: weft.pad(x, dim, before, new[0], 0.25), padded)
of_one_dim("rename", lambda dice, dim, pool: ((), [pool.dim("r", dim[1])]), lambda x, dim, _, new: weft.rename(x, dim, new[0]),
           lambda x, *_: x)
of_one_dim("unstack", lambda dice, dim, pool: (dice.randrange(dim[1]), []), lambda x, dim, i, new: weft.unstack(x, dim, i),
           lambda x, at, i, new: x.select(at, i))


def weft_top(name):
    return lambda x, dim, _, new: getattr(weft, name)(x, dim, new[0])[0]


of_one_dim("top_k", lambda dice, dim, pool: ((), [pool.dim("k", dice.randint(1, dim[1]))]), weft_top("top_k"),
           lambda x, at, _, new: x.topk(new[0][1], at)[0])
of_one_dim("bottom_k", lambda dice, dim, pool: ((), [pool.dim("k", dice.randint(1, dim[1]))]), weft_top("bottom_k"),
           lambda x, at, _, new: x.topk(new[0][1], at, largest=False)[0])


def draw_reshape(pool, dice):
    x = with_dims(pool, dice, 2)
    if x is None:
        return None
    dims = list(pool.dims[x])
    dice.shuffle(dims)
    merged = dims[:-2] + [pool.dim("m", dims[-2][1] * dims[-1][1])]
    if len({n for n, _ in merged}) < len(merged):
        return None
    return [x], (tuple(dims), tuple(merged)), tuple(merged)


add("reshape", draw_reshape, lambda v, said: weft.reshape(weft.transpose(v[0], list(said[0])), list(said[1])),
    lambda n, said: Named(n[0].along([d[0] for d in said[0]]).reshape([d[1] for d in said[1]]), [d[0] for d in said[1]]))


def draw_stack(pool, dice):
    x = some(pool, dice)
    dim = pool.dim("t", 2)
    if dim[0] in [n for n, _ in pool.dims[x]]:
        return None
    return [x, pool.fresh(pool.dims[x])], dim, (dim,) + pool.dims[x]


def torch_stack(n, dim):
    (a, b), names = together(*n)
    return Named(torch.stack([a, b]), [dim[0]] + names)


add("stack", draw_stack, lambda v, dim: weft.stack(v, dim), torch_stack)


def draw_concat(pool, dice):
    found = with_one_dim(pool, dice)
    if found is None:
        return None
    x, dim, rest = found
    other = pool.dim("o", dice.randint(1, 3))
    out = pool.dim("j", dim[1] + other[1])
    if {out[0], other[0]} & {n for n, _ in rest}:
        return None
    return [x, pool.fresh((other,) + rest)], (dim, other, out), (out,) + rest


def torch_concat(n, said):
    names = [said[0][0]] + list(n[0].without(said[0][0]))
    return Named(torch.cat([n[0].along(names), n[1].along([said[1][0]] + names[1:])]), [said[2][0]] + names[1:])


add("concat", draw_concat, lambda v, said: weft.concat(*v, *said), torch_concat)


def draw_diagonal(pool, dice, most):
    """An operand, two of its dims, and a diagonal of them, at most so far from the main one."""
    x = with_dims(pool, dice, 2)
    if x is None:
        return None
    row, column = dice.sample(pool.dims[x], 2)
    return [x], (row, column, dice.randint(-most, most)), pool.dims[x]


def triangular(name, by_torch):
    def draw(pool, dice):
        return draw_diagonal(pool, dice, 1)

    def of_torch(n, said):
        rest = [name for name in n[0].names if name not in (said[0][0], said[1][0])]
        names = rest + [said[0][0], said[1][0]]
        return Named(by_torch(n[0].along(names), said[2]), names)

    add(name, draw, lambda v, said: getattr(weft, name)(v[0], *said), of_torch)


triangular("lower_triangle", torch.tril)
triangular("upper_triangle", torch.triu)


# ---- indices ------------------------------------------------------------------------------------------------------------


def draw_gather(pool, dice):
    found, own = with_one_dim(pool, dice), pool.dim("g", dice.randint(1, 4))
    if found is None or has_name(found[2], own[0]):
        return None
    x, dim, rest = found
    return [x, pool.ids((own,), dim[1])], (dim, own), (own,) + rest


def torch_gather(n, said):
    rest = list(n[0].without(said[0][0]))
    return Named(n[0].along([said[0][0]] + rest)[n[1].tensor.long()], [said[1][0]] + rest)


add("gather", draw_gather, lambda v, said: weft.gather(v[0], v[1], said[0]), torch_gather)


def draw_pick(pool, dice):
    found = with_one_dim(pool, dice)
    if found is None:
        return None
    x, dim, rest = found
    return [x, pool.ids(rest, dim[1])], dim, rest


def picked(x, ids, dim):
    names = list(x.without(dim)) + [dim]
    return x.along(names).gather(-1, ids.along(names[:-1]).long()[..., None])[..., 0], names[:-1]


add("pick", draw_pick, lambda v, dim: weft.pick(*v, dim), lambda n, dim: Named(*picked(*n, dim[0])))


def torch_cross_entropy(n, dim):
    shares = Named(torch.log_softmax(n[0].tensor, n[0].at(dim[0])), n[0].names)
    y, names = picked(shares, n[1], dim[0])
    return Named(-y, names)


add("cross_entropy", draw_pick, lambda v, dim: weft.cross_entropy(*v, dim), torch_cross_entropy)


def draw_scatter(pool, dice):
    found, dim = with_one_dim(pool, dice), pool.dim("z", dice.randint(1, 5))
    if found is None or has_name(found[2], dim[0]):
        return None
    x, own, rest = found
    return [x, pool.ids((own,), dim[1])], (own, dim), (dim,) + rest


def torch_scatter(n, said):
    rest = list(n[0].without(said[0][0]))
    rows = n[0].along([said[0][0]] + rest)
    zeros = torch.zeros([said[1][1]] + list(rows.shape[1:]), dtype=rows.dtype)
    return Named(zeros.index_add(0, n[1].tensor.long(), rows), [said[1][0]] + rest)


def torch_segment_mean(n, said):
    sums = torch_scatter(n, said)
    counts = torch.bincount(n[1].tensor.long(), minlength=said[1][1]).clamp_min(1).double()
    return Named(sums.tensor / counts.reshape([-1] + [1] * (sums.tensor.dim() - 1)), sums.names)


add("scatter_add", draw_scatter, lambda v, said: weft.scatter_add(v[0], v[1], said[1]), torch_scatter)
add("segment_mean", draw_scatter, lambda v, said: weft.segment_mean(v[0], v[1], said[1]), torch_segment_mean)

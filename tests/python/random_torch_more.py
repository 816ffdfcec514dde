"""random_torch_more.py: more ops for random_torch_test.py: those that are written here by their definition, of options, or of ids.

Without a counterpart, since PyTorch's generator has other numbers: dropout, dropout_over, random_bernoulli, random_bernoulli_of,
random_categorical, random_gumbel, random_int, random_normal, random_truncated_normal, random_uniform; since it is the number of
the run: run_number. What stands in a graph without a value of its own is in other tests: spatial_same and spatial_valid in the
calls of conv here; iota, one_hot and constant in those of several."""
import math

import torch
import torch.nn.functional as F

import weft
from random_torch_ops import (Named, add, draw_conv, draw_diagonal, draw_scatter, is_above, of_one_dim, one, some, together, with_dims,
                              with_one_dim)

INT = torch.int64


def to_f64(x):
    return weft.cast(x, "f64")


# ---- element by element -------------------------------------------------------------------------------------------------

one("same", lambda x: x)


def truth_of(name, by_torch, into):
    def draw(pool, dice):
        x = some(pool, dice)
        return [x], None, pool.dims[x]

    add(name, draw, lambda v, _: to_f64(getattr(weft, name)(into(v[0]))),
        lambda n, _: Named(by_torch(into(n[0].tensor)).double(), n[0].names))


def with_odd(x):
    """Infinite or no number where an element of x is below 0."""
    if isinstance(x, weft.Value):
        return weft.log(weft.relu(x)) - weft.log(weft.relu(x - 0.5))
    return torch.log(torch.relu(x)) - torch.log(torch.relu(x - 0.5))


truth_of("is_finite", torch.isfinite, with_odd)
truth_of("is_nan", torch.isnan, with_odd)
truth_of("logical_not", torch.logical_not, is_above)


def draw_triangle(pool, dice):
    return draw_diagonal(pool, dice, 2)


def torch_triangle(n, said):
    row, column, offset = said
    mask = torch.ones(row[1], column[1]).tril(offset).double()
    (x, mask), names = together(n[0], Named(mask, [row[0], column[0]]))
    return Named(x * mask, names)


add("triangle", draw_triangle, lambda v, said: v[0] * to_f64(weft.triangle(v[0].graph, *said)), torch_triangle)


# ---- reductions ---------------------------------------------------------------------------------------------------------


def truth_over(name, by_torch):
    def draw(pool, dice):
        x = with_dims(pool, dice)
        if x is None:
            return None
        kept = tuple(d for d in pool.dims[x] if dice.random() < 0.5)
        return [x], kept, kept

    def of_torch(n, kept):
        names = [d[0] for d in kept]
        x = is_above(n[0].along(names + list(n[0].without(*names))))
        return Named(by_torch(x.reshape([d[1] for d in kept] + [-1]), -1).double(), names)

    add(name, draw, lambda v, kept: to_f64(getattr(weft, name)(list(kept), is_above(v[0]))), of_torch)


def draw_all(pool, dice):
    x = with_dims(pool, dice)
    return None if x is None else ([x], None, ())


truth_over("any", torch.any)
truth_over("all", torch.all)
add("mean", draw_all, lambda v, _: weft.mean(v[0]), lambda n, _: Named(n[0].tensor.mean(), ()))


def draw_histogram(pool, dice):
    x = with_dims(pool, dice)
    if x is None:
        return None
    kept, bins = tuple(d for d in pool.dims[x] if dice.random() < 0.4), pool.dim("h", dice.randint(1, 5))
    return None if bins in kept else ([x], (kept, bins), kept + (bins,))


def torch_histogram(n, said):
    kept, bins = [d[0] for d in said[0]], said[1]
    x = n[0].along(kept + list(n[0].without(*kept))).detach()
    rows = x.reshape([math.prod(d[1] for d in said[0]), -1])
    counts = torch.stack([torch.histc(row, bins[1], -1.5, 1.5) for row in rows])
    return Named(counts.reshape([d[1] for d in said[0]] + [bins[1]]), kept + [bins[0]])


add("histogram", draw_histogram, lambda v, said: to_f64(weft.histogram(list(said[0]), v[0], -1.5, 1.5, said[1])), torch_histogram)


# ---- norms --------------------------------------------------------------------------------------------------------------


def draw_group_norm(pool, dice):
    channel, row = ("c6", 6), pool.dim("w", dice.randint(2, 4))
    lead = pool.dim("u", dice.randint(1, 3))
    return [pool.fresh((lead, channel, row)), pool.fresh((channel,)), pool.fresh((channel,))], (channel, row, dice.choice([1, 2, 3, 6])), \
        (lead, channel, row)


def torch_group_norm(n, said):
    names = list(n[0].without("c6", said[1][0])) + ["c6", said[1][0]]
    return Named(F.group_norm(n[0].along(names), said[2], n[1].tensor, n[2].tensor, 1e-3), names)


def torch_instance_norm(n, said):
    names = list(n[0].without("c6", said[1][0])) + ["c6", said[1][0]]
    return Named(F.instance_norm(n[0].along(names), weight=n[1].tensor, bias=n[2].tensor, eps=1e-3), names)


add("group_norm", draw_group_norm, lambda v, said: weft.group_norm(*v, said[0], said[2], [said[1]], 1e-3), torch_group_norm)
add("instance_norm", draw_group_norm, lambda v, said: weft.instance_norm(*v, [said[1]], 1e-3), torch_instance_norm)


def draw_weight_norm(pool, dice):
    found = with_one_dim(pool, dice)
    return found and ([found[0], pool.fresh((found[1],))], found[1], pool.dims[found[0]])


def torch_weight_norm(n, dim):
    names = [dim[0]] + list(n[0].without(dim[0]))
    x = n[0].along(names) + 3
    over = list(range(1, x.dim()))
    length = (x * x).sum(over, keepdim=True).sqrt() if over else x.abs()
    return Named(x / length * n[1].tensor.reshape([-1] + [1] * len(over)), names)


add("weight_norm", draw_weight_norm, lambda v, _: weft.weight_norm(v[0] + 3.0, v[1]), torch_weight_norm)


# ---- losses -------------------------------------------------------------------------------------------------------------


def draw_weighted(pool, dice):
    found = with_one_dim(pool, dice)
    if found is None:
        return None
    x, dim, rest = found
    said = dim, dice.choice([0.0, 0.2, 1.0]), dice.choice([0.0, 0.3])
    return [x, pool.ids(rest, dim[1]), pool.fresh((dim,)), pool.fresh(rest)], said, rest


def torch_weighted(n, said):
    dim, smooth, z = said
    rest = list(n[0].without(dim[0]))
    x, labels = n[0].along(rest + [dim[0]]), n[1].along(rest).long()
    log_p, w = torch.log_softmax(x, -1), n[2].tensor.abs()
    at = -w[labels] * log_p.gather(-1, labels[..., None])[..., 0]
    loss = (1 - smooth) * at + smooth / dim[1] * -(w * log_p).sum(-1) + z * torch.logsumexp(x, -1) ** 2
    return Named(loss * n[3].along(rest), rest)


add("cross_entropy_with", draw_weighted, lambda v, said: weft.cross_entropy_with(
    v[0], v[1], said[0], class_weights=weft.abs(v[2]), row_weights=v[3], label_smoothing=said[1], z_loss=said[2]), torch_weighted)


def draw_ctc(pool, dice):
    time, classes, label = pool.dim("t", dice.randint(3, 5)), ("k4", 4), pool.dim("l", dice.randint(1, 3))
    row = pool.dim("u", dice.randint(1, 3))
    return [pool.fresh((row, time, classes)), pool.ids((row, label), 3)], (time, classes, label, row), (row,)


def weft_ctc(v, said):
    time, classes, label, _ = said
    return weft.ctc_loss(v[0], v[1], time=time, classes=classes, label=label, blank=3, zero_infinity=True)


def torch_ctc(n, said):
    time, classes, label, row = said
    x = torch.log_softmax(n[0].along([time[0], row[0], classes[0]]), -1)
    labels = n[1].along([row[0], label[0]]).long()
    full = [torch.full((row[1],), size, dtype=INT) for size in (time[1], label[1])]
    losses = []
    for r in range(row[1]):  # its own backward has no derivative: the sum over all ways, as it is defined
        ways = [torch.full((), -math.inf)]
        losses.append(ctc_by_definition(x[:, r], labels[r].tolist(), 3))
    value = F.ctc_loss(x, labels, *full, blank=3, reduction="none", zero_infinity=True).detach()
    assert torch.allclose(torch.stack(losses).detach(), value)
    return Named(torch.stack(losses), [row[0]])


def ctc_by_definition(log_p, labels, blank):
    ways = []

    def collapsed(path):
        out = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        return [c for c in out if c != blank]

    n_time, n_classes = log_p.shape
    for way in range(n_classes ** n_time):
        path = [way // n_classes ** t % n_classes for t in range(n_time)]
        if collapsed(path) == labels:
            ways.append(log_p[torch.arange(n_time), torch.tensor(path)].sum())
    return -torch.logsumexp(torch.stack(ways), 0) if ways else 0.0 * log_p.sum()


add("ctc_loss", draw_ctc, weft_ctc, torch_ctc)


# ---- products -----------------------------------------------------------------------------------------------------------


def draw_same(pool, dice):
    tap, stride, n = pool.dim("t", dice.randint(1, 3)), dice.randint(1, 2), dice.randint(4, 7)
    wide, out = pool.dim("w", n), pool.dim("v", -(-n // stride))
    return [pool.fresh((("c2", 2), wide)), pool.fresh((("n3", 3), ("c2", 2), tap))], (wide, tap, ("n3", 3), stride, out), (("n3", 3), out)


def weft_same(v, said):
    wide, tap, made, stride, out = said
    return weft.conv([made, out], v[0], v[1], [weft.spatial_same(wide, tap, out[0], stride, 1)])


def torch_same(n, said):
    wide, tap, made, stride, out = said
    x, w = n[0].along(["c2", wide[0]]), n[1].along(["n3", "c2", tap[0]])
    more = max(0, (out[1] - 1) * stride + tap[1] - wide[1])
    return Named(F.conv1d(F.pad(x, (more // 2, more - more // 2))[None], w, stride=stride)[0], ["n3", out[0]])


add("conv of the same size", draw_same, weft_same, torch_same)


def draw_transposed(pool, dice):
    (_, w), (wide, tap, made, stride, out), _ = draw_conv(pool, dice)
    return [pool.fresh((made, out)), w], (wide, tap, made, stride, out), (("c2", 2), wide)


def weft_transposed(v, said):
    wide, tap, _, stride, out = said
    return weft.conv_transpose([("c2", 2), wide], v[0], v[1], [weft.spatial_valid(wide, tap, out[0], stride, 1)])


def torch_transposed(n, said):
    wide, tap, _, stride, out = said
    y, w = n[0].along(["n3", out[0]]), n[1].along(["n3", "c2", tap[0]])
    x = F.conv_transpose1d(y[None], w, stride=stride)[0]
    return Named(F.pad(x, (0, wide[1] - x.shape[1])), ["c2", wide[0]])


add("conv_transpose", draw_transposed, weft_transposed, torch_transposed)


def draw_attention_with(pool, dice):
    query, memory, feature, heads = pool.dim("q", dice.randint(1, 5)), pool.dim("m", dice.randint(1, 5)), ("f4", 4), ("heads", 2)
    said = query, memory, feature, dice.random() < 0.5, dice.choice([0, 0, 2])
    return [pool.fresh((heads, query, feature)), pool.fresh((memory, heads, feature)), pool.fresh((heads, memory, feature)),
            pool.fresh((heads, memory)), pool.ids((query, memory), 3)], said, (heads, query, feature)


def weft_attention_with(v, said):
    query, memory, feature, causal, window = said
    return weft.attention_with(v[0], v[1], v[2], query=query, memory=memory, feature=feature, causal=causal, window=window, scale=0.7,
                               bias=v[3], mask=v[4])


def torch_attention_with(n, said):
    query, memory, feature, causal, window = said
    q, k, v = (x.along(["heads", name, "f4"]) for x, name in zip(n, (query[0], memory[0], memory[0])))
    i, j = torch.arange(query[1])[:, None], torch.arange(memory[1])[None]
    seen = n[4].along([query[0], memory[0]]) != 0
    if causal:
        seen = seen & (j <= i)
    if window:
        seen = seen & ((i - j).abs() < window)
    scores = 0.7 * q @ k.transpose(1, 2) + n[3].along(["heads", memory[0]])[:, None]
    has = seen.any(-1, keepdim=True)
    p = torch.softmax(scores.masked_fill(~seen & has, -math.inf), -1) * has
    return Named(p @ v, ["heads", query[0], "f4"])


add("attention_with", draw_attention_with, weft_attention_with, torch_attention_with)


def draw_rope(pool, dice):
    row = pool.dim("u", dice.randint(1, 5))
    return [pool.fresh((row, ("f4", 4))), pool.ids((row,), 20)], row, (row, ("f4", 4))


def torch_rope(n, row):
    x = n[0].along([row[0], "f4"])
    turn = n[1].tensor[:, None].double() / 100.0 ** (torch.arange(2) / 2).double()
    a, b = x[:, :2], x[:, 2:]
    return Named(torch.cat([a * turn.cos() - b * turn.sin(), a * turn.sin() + b * turn.cos()], 1), [row[0], "f4"])


add("rope", draw_rope, lambda v, row: weft.rope(v[0], v[1], ("f4", 4), 100.0), torch_rope)


def draw_alibi(pool, dice):
    heads, row, column = dice.choice([("heads", 2), ("h4", 4)]), pool.dim("u", dice.randint(1, 5)), pool.dim("m", dice.randint(1, 5))
    return [pool.fresh((row,))], (heads, row, column), (heads, row, column)


def torch_alibi(n, said):
    heads, row, column = said
    slope = 2.0 ** (-8.0 / heads[1] * (1 + torch.arange(heads[1]))).double()
    bias = -slope[:, None, None] * (torch.arange(row[1])[:, None] - torch.arange(column[1])[None]).abs()
    return Named(bias * n[0].tensor[None, :, None], [d[0] for d in said])


add("alibi", draw_alibi, lambda v, said: v[0] * weft.alibi(v[0].graph, "f64", *said), torch_alibi)


# ---- matrices -----------------------------------------------------------------------------------------------------------


def unit(graph, row, column):
    return weft.one_hot(weft.iota(graph, "i32", row), column, "f64")


def positive_of(a, row, column):
    """a a' and twice one: symmetric, positive definite, of a [row, column]."""
    if isinstance(a, weft.Value):
        other = weft.rename(weft.rename(a, column, ("k", 3)), row, column)
        return weft.einsum([row, column], weft.rename(a, column, ("k", 3)), other) + unit(a.graph, row, column) * 2
    return a @ a.T + 2 * torch.eye(3, dtype=torch.float64)


ROW, COLUMN = ("row", 3), ("column", 3)


def matrix(name, by_weft, by_torch, has_side=True):
    def draw(pool, dice):
        side = pool.dim("b", dice.randint(1, 3))
        drawn = [pool.fresh((ROW, COLUMN))] + ([pool.fresh((ROW, side))] if has_side else [])
        return drawn, dice.random() < 0.5, (COLUMN, side) if has_side else (ROW, COLUMN)

    def of_torch(n, said):
        a = n[0].along(["row", "column"])
        if not has_side:
            return Named(by_torch(a), ["row", "column"])
        side = n[1].without("row")[0]
        return Named(by_torch(a, n[1].along(["row", side]), said), ["column", side])

    add(name, draw, by_weft, of_torch)


def weft_triangular(v, is_upper):
    return weft.triangular_solve(v[0] * 0.3 + unit(v[0].graph, ROW, COLUMN) * 2, v[1], ROW, COLUMN, is_upper)


def torch_triangular(a, b, is_upper):
    a = a * 0.3 + 2 * torch.eye(3, dtype=torch.float64)
    return torch.linalg.solve_triangular(a.triu() if is_upper else a.tril(), b, upper=is_upper)


def torch_cholesky(a):
    return torch.linalg.cholesky(positive_of(a, ROW, COLUMN))


matrix("cholesky", lambda v, _: weft.cholesky(positive_of(v[0], ROW, COLUMN), ROW, COLUMN), torch_cholesky, False)
matrix("triangular_solve", weft_triangular, torch_triangular)
matrix("solve_positive", lambda v, _: weft.solve_positive(positive_of(v[0], ROW, COLUMN), v[1], ROW, COLUMN),
       lambda a, b, _: torch.linalg.solve(positive_of(a, ROW, COLUMN), b))


# ---- shapes -------------------------------------------------------------------------------------------------------------


def draw_reindex(dice, dim, pool):
    stride, over, size = dice.choice([-2, -1, 1, 2]), dice.randint(1, 2), dice.randint(1, 6)
    offset = dice.randint(-3, 6)
    if not any(at >= 0 for at in places(dim[1], stride, offset, over, size)):
        return None
    return (stride, offset, over), [pool.dim("s", size)]


def places(n, stride, offset, over, size):
    at = [(stride * o + offset) / over for o in range(size)]
    return [int(p) if p == int(p) and 0 <= p < n else -1 for p in at]


def reindexed(x, at, said, new):
    zeros = torch.zeros_like(x.narrow(at, 0, 1))
    taken = [x.narrow(at, p, 1) if p >= 0 else zeros for p in places(x.shape[at], *said, new[0][1])]
    return torch.cat(taken, at)


of_one_dim("reindex", draw_reindex, lambda x, dim, said, new: weft.reindex(x, dim, new[0], *said), reindexed)


def draw_reflected(dice, dim, pool):
    if dim[1] < 2:
        return None
    before, behind = dice.randint(0, dim[1] - 1), dice.randint(0, dim[1] - 1)
    return before, [pool.dim("s", before + dim[1] + behind)]


def reflected(x, at, before, new):
    n = x.shape[at]
    ids = [abs(i - before) for i in range(new[0][1])]
    return x.index_select(at, torch.tensor([i if i < n else 2 * (n - 1) - i for i in ids]))


of_one_dim("pad_reflect", draw_reflected, lambda x, dim, before, new: weft.pad_reflect(x, dim, before, new[0]), reflected)
of_one_dim("dilate", lambda dice, dim, pool: (lambda step: (step, [pool.dim("s", (dim[1] - 1) * step + 1)]))(dice.randint(1, 3)),
           lambda x, dim, step, new: weft.dilate(x, dim, step, new[0]), lambda x, at, step, new: reindexed(x, at, (1, 0, step), new))


def draw_split(dice, dim, pool):
    size = dice.choice([s for s in range(1, dim[1] + 1) if dim[1] % s == 0])
    return dice.randrange(dim[1] // size), [pool.dim("s", size)]


of_one_dim("split", draw_split, lambda x, dim, index, new: weft.split(x, dim, index, new[0]),
           lambda x, at, index, new: x.split(new[0][1], at)[index])
of_one_dim("order", lambda dice, dim, pool: (dice.random() < 0.5, [pool.dim("k", dice.randint(1, dim[1]))]),
           lambda x, dim, down, new: weft.cast(weft.order(x, dim, new[0], down), "f64"),
           lambda x, at, down, new: torch.sort(x, dim=at, descending=down, stable=True)[1].narrow(at, 0, new[0][1]).double())


# ---- indices ------------------------------------------------------------------------------------------------------------


def draw_shift_by(pool, dice):
    found = with_one_dim(pool, dice)
    if found is None:
        return None
    x, dim, rest = found
    return [x, pool.ids(rest[:1], 7)], (dim, dice.random() < 0.5), pool.dims[x]


def torch_shift_by(n, said):
    dim, wraps = said
    names = list(n[0].without(dim[0])) + [dim[0]]
    x, by = n[0].along(names), n[1].along(names)
    at = torch.arange(dim[1]) - by
    at, is_there = (at % dim[1], at == at) if wraps else (at.clamp(0, dim[1] - 1), (at >= 0) & (at < dim[1]))
    y = x.gather(-1, at.expand(x.shape).long())
    return Named(torch.where(is_there, y, torch.zeros_like(y)), names)


add("shift_by", draw_shift_by, lambda v, said: weft.shift_by(v[0], said[0], v[1], said[1]), torch_shift_by)


def torch_scattered(reduce, instead):
    def of_torch(n, said):
        own, dim = said
        rest = list(n[0].without(own[0]))
        x = n[0].along([own[0]] + rest)
        ids = n[1].tensor.long()
        rows = []
        for i in range(dim[1]):
            its = x[ids == i]
            rows.append(reduce(its, 0) if len(its) else torch.full(x.shape[1:], instead, dtype=x.dtype))
        return Named(torch.tanh(torch.stack(rows)), [dim[0]] + rest)

    return of_torch


# Through tanh, of which what is nowhere is 1 or -1.
add("scatter_max", draw_scatter, lambda v, said: weft.tanh(weft.scatter_max(v[0], v[1], said[1])), torch_scattered(torch.amax, -math.inf))
add("scatter_min", draw_scatter, lambda v, said: weft.tanh(weft.scatter_min(v[0], v[1], said[1])), torch_scattered(torch.amin, math.inf))


def draw_unpick(pool, dice):
    x, dim = some(pool, dice), pool.dim("z", dice.randint(1, 5))
    if dim in pool.dims[x]:
        return None
    return [x, pool.ids(pool.dims[x], dim[1])], dim, pool.dims[x] + (dim,)


def torch_unpick(n, dim):
    names = list(n[0].names)
    one_hot = F.one_hot(n[1].along(names).long(), dim[1]).double()
    return Named(n[0].tensor[..., None] * one_hot, names + [dim[0]])


add("unpick", draw_unpick, lambda v, dim: weft.unpick([(d.name, d.size) for d in v[0].dims] + [dim], v[0], v[1], dim), torch_unpick)


def draw_pick_product(pool, dice):
    row, inner, outer, which = pool.dim("u", dice.randint(1, 5)), ("i3", 3), ("o2", 2), pool.dim("z", dice.randint(1, 4))
    return [pool.fresh((row, inner)), pool.fresh((which, inner, outer)), pool.ids((row,), which[1])], (row, which), (row, outer)


def torch_pick_product(n, said):
    row, which = said
    w = n[1].along([which[0], "i3", "o2"])[n[2].tensor.long()]
    return Named(torch.einsum("ri,rio->ro", n[0].along([row[0], "i3"]), w), [row[0], "o2"])


add("pick_product", draw_pick_product, lambda v, said: weft.pick_product(v[0], v[1], v[2], said[1]), torch_pick_product)


def draw_bag(pool, dice):
    table, row = pool.dim("z", dice.randint(1, 5)), pool.dim("u", dice.randint(1, 4))
    bag, wide = pool.dim("g", dice.randint(1, 3)), ("i3", 3)
    drawn = [pool.fresh((table, wide)), pool.ids((row, bag), table[1]), pool.fresh((row, bag))]
    return drawn, (table, row, bag, dice.random() < 0.5), (row, wide)


def torch_bag(n, said):
    table, row, bag, is_mean = said
    ids, weights = n[1].along([row[0], bag[0]]).long(), n[2].along([row[0], bag[0]])
    y = torch.einsum("rb,rbi->ri", weights, n[0].along([table[0], "i3"])[ids])
    return Named(y / bag[1] if is_mean else y, [row[0], "i3"])


add("embedding_bag", draw_bag, lambda v, said: weft.embedding_bag(v[0], v[1], said[0], said[2], v[2], said[3]), torch_bag)


def draw_checked(pool, dice):
    found, own = with_one_dim(pool, dice), pool.dim("g", dice.randint(1, 4))
    if found is None or own in found[2]:
        return None
    x, dim, rest = found
    return [x, pool.ids((own,), dim[1])], (dim, own), (own,) + rest


def torch_checked(n, said):
    rest = list(n[0].without(said[0][0]))
    return Named(n[0].along([said[0][0]] + rest)[n[1].tensor.long()], [said[1][0]] + rest)


add("checked_ids", draw_checked, lambda v, said: weft.gather(v[0], weft.checked_ids(v[1], said[0]), said[0]), torch_checked)


def draw_outside(pool, dice):
    own, dim = pool.dim("g", dice.randint(1, 4)), pool.dim("z", dice.randint(1, 5))
    return [pool.fresh(()), pool.ids((own,), 2 * dim[1])], dim, ()


add("count_outside", draw_outside, lambda v, dim: v[0] * to_f64(weft.count_outside(v[1], dim)),
    lambda n, dim: Named(n[0].tensor * (n[1].tensor >= dim[1]).sum(), ()))


def weft_required(v, _):
    return weft.require(v[0], weft.all([], weft.is_finite(v[0] * 0.0)), None, "no number")


add("require", lambda pool, dice: (lambda x: ([x], None, pool.dims[x]))(some(pool, dice)), weft_required, lambda n, _: n[0])

"""weft_test.py ROOT: `import weft`: types as C has them, arrays in and out, errors, lifetimes, the example.

LIBWEFT names the library. Exit status 77: numpy is not here."""
import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile

from start import np, root, weft


def test_every_struct_lies_in_memory_as_c_has_it():
    structs = {name: s["fields"] for name, s in weft.c.model["structs"].items() if s["fields"] is not None}
    lines = ["#include <stdio.h>", "#include <stddef.h>"]
    lines += [f"#include <{header}>" for header in sorted({s["header"] for s in weft.c.model["structs"].values()})]
    lines.append("int main(void)\n{")
    for name, fields in structs.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(f'printf("{name}.{field["name"]} %zu\\n", offsetof({name}, {field["name"]}));')
    lines.append("}")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "layout.c")
        with open(source, "w") as file:
            file.write("\n".join(lines))
        from weft import _headers

        includes = ["-I" + place for place in _headers.find(root)]
        subprocess.run(["cc", *includes, source, "-o", os.path.join(folder, "layout")], check=True)
        said = subprocess.run([os.path.join(folder, "layout")], check=True, capture_output=True, text=True).stdout
    for row in said.splitlines():
        what, number = row.split()
        name, _, field = what.partition(".")
        made = weft.c.types[name]
        here = getattr(made, field).offset if field else ctypes.sizeof(made)
        assert here == int(number), f"{what} is {number} in C, {here} in Python"
    return f"{len(structs)} structs"


def perceptron(mesh, layout):
    """A program whose mesh, layout and graph nobody else holds."""
    batch, pixel, digit = weft.Dim("batch", 12), weft.Dim("pixel", 5), ("digit", 3)
    g = weft.Graph(seed=3)
    x, y = g.input("x", [batch, pixel], "f64"), g.input("y", [batch], "i32")
    w = g.variable("w", [pixel, digit], weft.normal(0.0, 0.5), "f64")
    logits = weft.einsum([batch, digit], x, w)
    loss = weft.mean(weft.cross_entropy(logits, y, digit))
    gradient, = weft.gradients(loss, [w])
    return weft.Program(weft.Mesh(mesh), layout, [loss, logits, gradient]), x, y, w, loss, logits, gradient


def test_arrays_go_in_and_come_out():
    random = np.random.default_rng(1)
    images, labels, weights = random.normal(size=(12, 5)), random.integers(0, 3, 12), random.normal(size=(5, 3))
    for mesh, layout in (("", ""), ("data:2,model:2", "batch:data,digit:model"), ("data:5", "pixel:data")):
        program, x, y, w, loss, logits, gradient = perceptron(mesh, layout)
        gc.collect()  # the program alone keeps its mesh and graph
        program.write(x, images)
        program.write(y, labels)
        program.write(w, weights)
        program.run()
        wanted = images @ weights
        np.testing.assert_allclose(program.read(logits), wanted, rtol=1e-12)
        p = np.exp(wanted) / np.exp(wanted).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(program.read(loss), -np.log(p[np.arange(12), labels]).mean(), rtol=1e-12)
        np.testing.assert_allclose(program.read(gradient), images.T @ (p - np.eye(3)[labels]) / 12, rtol=1e-9, atol=1e-12)
        assert program.read(w).tolist() == weights.tolist()


def test_operators_are_ops():
    g = weft.Graph()
    rows = weft.Dim("rows", 4)
    a, b = g.input("a", [rows]), g.input("b", [rows])
    made = [a + b, a - b, a * b, a / b, -a, a + 2, 2 + a, a - 2, 2 - a, a * 3, 3 * a, a / 4, 4 / a, a < b, a <= 1, a > b, a >= 1.0]
    program = weft.Program(weft.Mesh(), None, made)
    x, y = np.array([1, -2, 0.5, 4], "f4"), np.array([2, 1, -3, 4], "f4")
    program.write(a, x)
    program.write(b, y)
    program.run()
    wanted = [x + y, x - y, x * y, x / y, -x, x + 2, 2 + x, x - 2, 2 - x, x * 3, 3 * x, x / 4, 4 / x, x < y, x <= 1, x > y, x >= 1]
    for value, array in zip(made, wanted):
        np.testing.assert_allclose(program.read(value), array, rtol=1e-6, err_msg=repr(value))
    assert a.dims == (rows,) and a.dtype == "f32" and a.name == "a" and "rows:4" in repr(a)
    assert (a < b).dtype == "i32"


def test_a_builder_gives_a_value_of_its_own():
    g = weft.Graph()
    rows = weft.Dim("rows", 4)
    a = g.input("a", [rows])
    for own in (weft.cast(a, "f32"), weft.roll(a, rows, 0), weft.same(a)):
        weft.name(own, "own")
        assert own.name == "own" and a.name == "a"
    assert weft.name(a, "b").name == "b" and a.name == "b" and g.find("b").name == "b"


def refused(kind, pattern, call, *given, **options):
    try:
        call(*given, **options)
    except kind as error:
        assert re.search(pattern, str(error)), error
        return error
    raise AssertionError(f"not refused: {pattern}")


def test_layers_are_called_by_keywords():
    rows, wide, out = weft.Dim("rows", 4), weft.Dim("wide", 8), weft.Dim("out", 16)
    g = weft.Graph(seed=1)
    x = g.input("x", [rows, wide])
    y = weft.dense(x, name="up", in_=[wide], out=[out], activation="relu")
    z = weft.norm(y, name="norm", feature=out)
    assert y.dims == z.dims == (rows, out) and g.find("up/weight").dims == (wide, out)
    assert weft.variable(g, name="v", dtype="f32", shape=[rows], initial=weft.constant_of(0.0)).name == "v"
    refused(TypeError, "im_ is no option", weft.dense, x, name="a", im_=[wide], out=[out])
    refused(weft.Error, "it has no name", weft.dense, x, in_=[wide], out=[out])
    refused(TypeError, r"relu\(x\) was given 1 arguments, name=", weft.relu, x, name="r")


def test_mistakes_are_sentences():
    rows, other = weft.Dim("rows", 4), weft.Dim("rows", 5)
    g = weft.Graph()
    a = g.input("a", [rows])
    error = refused(weft.Error, r"weft_test\.py:\d+.*same size", weft.add, a, weft.Graph.input(g, "b", [other]))
    assert error.status == "usage"
    before = weft.relu(a)
    refused(weft.Error, "feature", weft.attention, a, a, a, rows, rows, rows, False)
    program = weft.Program(weft.Mesh(), "", [before, weft.exp(before)])  # the graph goes on after its errors
    program.write(a, [1, 2, 3, -4])
    program.run()
    assert program.read(before).tolist() == [1, 2, 3, 0]
    assert program.find("a").dims == (rows,) and g.find("a").name == "a"
    refused(weft.Error, "aa", program.find, "aa")
    refused(weft.Error, "aa", g.find, "aa")
    refused(weft.Error, "model", weft.Mesh, "model:0")
    refused(weft.Error, "bacth", weft.Program, weft.Mesh(), "bacth:data", weft.relu(weft.Graph().input("c", [rows])))
    refused(TypeError, "relu.*weft_value is wanted", weft.relu, 3)
    refused(TypeError, r"relu\(x\) was given 2", weft.relu, a, a)
    refused(TypeError, "rat is no option", weft.sgd, a, rat=1.0)
    refused(TypeError, "f8", g.input, "d", [rows], "f8")
    refused(AttributeError, r"weft has no rellu; did you mean (relu|elu)\?", lambda: weft.rellu)
    refused(TypeError, r"rat is no option.*did you mean rate\?", weft.sgd, a, rat=1.0)
    refused(TypeError, r"dtype is 'f23'; did you mean f32\?", g.input, "d", [rows], "f23")
    refused(TypeError, "dtype is None", g.input, "d", [rows], None)
    refused(TypeError, r"reed: .*|read: 3 is no value of the program", program.read, 3)
    assert program.read("a").tolist() == [1, 2, 3, -4]  # by its name
    refused(weft.Error, "did you mean a|no .*aa", program.read, "aa")
    refused(AttributeError, "c.lib.weft_mesh_create", lambda: weft.mesh_create)
    g = weft.Graph()
    n = g.input("n", [rows], "i32")
    program = weft.Program(weft.Mesh(), "", weft.cast(n, "f32"))
    refused(ValueError, r"shape \(3,\)", program.write, n, [1, 2, 3])
    refused(TypeError, "[Cc]ast", program.write, n, [1.5, 2, 3, 4])  # numbers_test has more


def test_many_objects_come_and_go():
    for _ in range(50):
        program, x, *_ = perceptron("data:2", "batch:data")
        values = [x, program.values]
        del program, x
        gc.collect()
        repr(values)


def test_every_plain_function_says_its_prototype():
    names = [name for name in dir(weft) if "weft_" + name in weft.c.functions]
    for name in names:
        assert name in weft.__all__ or f"weft_{name}(" in getattr(weft, name).__doc__, name
    assert weft.relu.__doc__.startswith("weft_value weft_relu(weft_value x)") and len(names) > 150
    assert weft.version() == weft.c.lib.weft_version().decode()
    assert weft.mesh_n_ranks(weft.Mesh("a:2,b:3")) == 6
    return f"{len(names)} functions"


def test_a_plan_is_data():
    program, *_ = perceptron("data:2,model:2", "batch:data,digit:model")
    plan = program.plan()
    assert plan["ranks"] == 4 and plan["mesh"] == "data:2,model:2"
    assert any("all_reduce" in move.values() for move in plan["collectives"]), plan["collectives"]
    share = weft.Program(program.mesh, "batch:data,digit:model", program.values, share=program)
    assert share.plan()["steps"] == plan["steps"]


def test_a_policy_may_be_written_in_python():
    g = weft.Graph(seed=1)
    rows, wide, out = weft.Dim("rows", 8), weft.Dim("wide", 16), weft.Dim("out", 4)
    x, w = g.input("x", [rows, wide]), g.variable("w", [wide, out], weft.normal(0.0, 1.0))
    y = weft.einsum([rows, out], x, w)
    mesh = weft.Mesh("data:2", plan=True)

    def pick(context, decision):
        ways = [decision.contents.ways[way] for way in range(decision.contents.n_ways)]
        assert decision.contents.op == b"einsum" and all(way.price.total >= 0 for way in ways)
        return [way.dim for way in ways].index(b"wide")

    usual = weft.Program(mesh, "rows:data", y, explain=True).plan()
    ours = weft.Program(mesh, "rows:data", y, explain=True, policy={"name": "along wide", "pick": pick}).plan()
    assert usual["policy"] is None and ours["policy"] == "along wide"
    assert usual["collectives"] == [] and any("wide is contracted" in move["reason"] for move in ours["collectives"])
    ours = weft.Program(mesh, "rows:data", y, policy={"wants": lambda context, value: "wide:data"}).plan()
    assert any(tensor["name"] == "w" and "data" in str(tensor) for tensor in ours["tensors"]), ours["tensors"]
    refused(KeyError, "mine", weft.Program, mesh, "", y, policy={"pick": lambda *given: {}["mine"]})
    refused(ValueError, r"what <lambda> returned is 4294967296", weft.Program, mesh, "", y, policy={"pick": lambda *given: 1 << 32})
    refused(TypeError, r"what <lambda> returned is 0\.5; it is a whole number", weft.Program, mesh, "", y, policy={"pick": lambda *_: 0.5})


def test_examples_train_and_say_what_moves():
    environment = {**os.environ, "PYTHONPATH": os.path.join(root, "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    examples = (("mlp", 0.1, ("data:2,model:2", "batch:data,hidden:model")), ("cnn", 0.2, ("data:2", "batch:data,experts:data")))
    for name, part, split in examples:
        losses = []
        for mesh in (("", ""), split):
            example = os.path.join(root, "python", "examples", name + ".py")
            run = subprocess.run([sys.executable, example, *mesh], env=environment, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            losses.append([float(found) for found in re.findall(r"loss ([\d.]+)", run.stdout)])
            assert losses[-1][-1] < part * losses[-1][0], run.stdout
            assert name != "mlp" or ("all_reduce" in run.stdout) == bool(mesh[0]), run.stdout
        np.testing.assert_allclose(losses[0][:4], losses[1][:4], atol=3e-4)


def windows(x, taps, pick):
    """x [rows, columns] seen through windows of taps by taps, zeros or what pick makes of -inf outside: by numpy alone."""
    padded = np.pad(x, taps // 2, constant_values=pick)
    return np.lib.stride_tricks.sliding_window_view(padded, (taps, taps))


def test_images_are_convolved_and_pooled():
    batch, row, column, tap = weft.Dim("batch", 3), weft.Dim("row", 8), weft.Dim("column", 6), weft.Dim("tap", 3)
    random = np.random.default_rng(2)
    images, filters = random.normal(size=(3, 8, 6)), random.normal(size=(3, 3, 4))
    for mesh, layout in (("", ""), ("space:2", "row:space"), ("data:3", "batch:data")):
        g = weft.Graph(seed=1)
        x, w = g.input("x", [batch, row, column], "f64"), g.input("w", [tap, ("tap_column", 3), ("made", 4)], "f64")
        rows = weft.spatial_same(row, tap, "row", 1, 1)
        columns = weft.spatial_same(column, ("tap_column", 3), "column", 1, 1)
        assert rows.in_ == rows.out == row and (rows.stride, rows.before) == (1, 1), rows
        y = weft.conv([batch, row, column, ("made", 4)], x, w, [rows, columns])
        largest = weft.max_pool(x, [dict(in_=row, tap=tap, out=row, before=1), columns])
        halves = [weft.spatial_valid(dim, ("pool", 2), dim.name, 2, 1) for dim in (row, column)]
        mean = weft.average_pool(x, halves, True)
        assert [dim.size for dim in mean.dims] == [3, 4, 3]
        layer = weft.convolution(x, name="layer", spatial=[rows, columns], features=("made", 4), weights=weft.constant_of(1.0))
        program = weft.Program(weft.Mesh(mesh), layout, [y, largest, mean, layer])
        program.write(x, images)
        program.write(w, filters)
        program.run()
        for image in range(3):
            seen = windows(images[image], 3, 0.0)
            np.testing.assert_allclose(program.read(y)[image], np.einsum("rcij,ijm->rcm", seen, filters), atol=1e-12)
            np.testing.assert_allclose(program.read(layer)[image], seen.sum(axis=(2, 3))[..., None].repeat(4, axis=2), atol=1e-12)
            np.testing.assert_array_equal(program.read(largest)[image], windows(images[image], 3, -np.inf).max(axis=(2, 3)))
            np.testing.assert_allclose(program.read(mean)[image], images[image].reshape(4, 2, 3, 2).mean(axis=(1, 3)))
    refused(TypeError, "max_pool: spatial is 3; weft_spatials is wanted", weft.max_pool, x, 3)
    refused(TypeError, "tip is no option of weft_spatial", weft.max_pool, x, [dict(in_=row, tip=tap, out=row)])
    refused(TypeError, r"max_pool: in is 'row'.*weft\.Dim", weft.max_pool, x, [dict(in_="row", tap=tap, out=row)])
    refused(weft.Error, "max_pool.*depth", weft.max_pool, x, [dict(in_=("depth", 8), tap=tap, out=row)])


def test_what_is_filled_comes_behind_the_result():
    g = weft.Graph(seed=1)
    batch, row = weft.Dim("batch", 3), weft.Dim("row", 5)
    x = g.input("x", [batch, row], "f64")
    sorted_, ids = weft.sort(x, row, True)
    best, where = weft.top_k(x, row, ("k", 2))
    y = weft.sum([], weft.exp(x))
    slopes = weft.gradients_seeded([y], [], [x])  # a list, as of gradients
    rows = [("b", 3), ("r", 5)]
    jacobian, = weft.jacobian(weft.exp(x), [x], rows, 0)
    product, = weft.hessian_vector(y, [x], [x])
    assert [type(each) for each in (slopes, weft.gradients(y, [x]), weft.gradients(y, [x, x]))] == [list] * 3
    states, last = weft.lstm(x, name="lstm", over=batch, feature=row, hidden=("hidden", 4))
    gru, state = weft.gru(x, name="gru", over=batch, feature=row, hidden=("hidden", 4), weights=weft.uniform(-1.0, 1.0))
    assert state.c is None and last.h.dims == last.c.dims == (("hidden", 4),), (state, last)
    normed, update = weft.batch_norm(x, name="norm", channel=row)
    fixed, none = weft.batch_norm(x, name="norm", channel=row, is_fixed=True)
    assert none is None and update is not None and weft.initial_of("zeros", 1, 1).a == 0
    program = weft.Program(weft.Mesh("data:2"), "row:data",
                           [sorted_, ids, best, where, slopes[0], jacobian, product, states, last.h, normed])
    array = np.random.default_rng(4).normal(size=(3, 5))
    program.write(x, array)
    program.run()
    order = np.argsort(-array, axis=1)
    np.testing.assert_array_equal(program.read(ids), order)
    np.testing.assert_array_equal(program.read(sorted_), np.take_along_axis(array, order, axis=1))
    np.testing.assert_array_equal(program.read(where), order[:, :2])
    np.testing.assert_allclose(program.read(slopes[0]), np.exp(array))
    np.testing.assert_allclose(program.read(product), np.exp(array) * array)
    np.testing.assert_allclose(program.read(jacobian).reshape(15, 15), np.diag(np.exp(array).ravel()), atol=1e-15)
    np.testing.assert_allclose(program.read(last.h), program.read(states)[-1])
    usage = weft.plan_usage(program, 0)
    assert usage.total_bytes > 0 and len(usage.peak_bytes) == 3 and usage.n_steps == program.plan()["steps"]
    assert program.plan_usage(1) == weft.plan_usage(program, 1) and program.measured_usage(0).n_steps == usage.n_steps
    moved, planned = program.measured_traffic(0), program.plan_traffic()
    assert moved == planned and all(line.axes == ("data",) and line.count > 0 for line in moved), (moved, planned)
    assert sum(line.bytes for line in moved) > 0 and "all_gather" in [line.kind for line in moved], moved
    refused(ValueError, "rank is 2; it is from 0 to 1", program.plan_traffic, 2)


def test_values_that_may_be_left_out():
    g = weft.Graph(seed=1)
    vocab, bag, wide = weft.Dim("vocab", 5), weft.Dim("bag", 3), weft.Dim("wide", 2)
    table, ids = g.variable("table", [vocab, wide], weft.normal(0.0, 1.0)), g.input("ids", [("row", 2), bag], "i32")
    made = [weft.embedding_bag(table, ids, vocab, bag, None, True), weft.embedding_bag(table, ids, vocab, bag, is_mean=True)]
    gradients = weft.gradients(weft.sum([], made[0]), [table])
    made += [weft.require(made[0], weft.all([], weft.is_finite(made[0])), None, "it is not finite"),
             weft.adam(None, variables=[table], gradients=gradients)]
    program = weft.Program(weft.Mesh("data:2"), "row:data", made)
    rows = np.array([[0, 1, 4], [2, 2, 3]])
    program.write(ids, rows)
    before = program.read(table)
    program.run()
    for value in made[:3]:
        np.testing.assert_allclose(program.read(value), before[rows].mean(axis=1), rtol=1e-6)
    refused(TypeError, "relu: x is None; weft_value is wanted", weft.relu, None)
    refused(TypeError, "embedding_bag: table is None", weft.embedding_bag, None, ids, vocab, bag, None, True)


def test_gradients_may_be_ones_own():
    g = weft.Graph(seed=1)
    x, w = g.input("x", [("row", 4)], "f64"), g.variable("w", [("row", 4)], 2.0, "f64")

    def straight_through(given, made, slope):
        assert [value.dims for value in given] == [made.dims, made.dims] == [slope.dims] * 2
        return [slope * 3, None]

    y = weft.custom_gradient([x, w], weft.round(x) * w, straight_through)
    assert [value.name for value in weft.trainable(y)] == ["w"]
    slope, none = weft.gradients(weft.sum([], y * y), [x, w], zeros_allowed=True)
    program = weft.Program(weft.Mesh("data:2"), "row:data", [y, slope])
    program.write(x, [0.2, 0.8, 1.4, -2.6])
    program.run()
    np.testing.assert_array_equal(program.read(y), [0, 2, 2, -6])
    np.testing.assert_array_equal(program.read(slope), [0, 12, 12, -36])
    for rule, kind, sentence in ((lambda *given: [given[2], None, None], ValueError, "gave 3 gradients of 2 values"),
                                 (lambda *given: [1.5, None], TypeError, "gradient 0 that <lambda> gave is 1.5; it is a value")):
        wrong = weft.custom_gradient([x, w], weft.round(x) * w, rule)
        refused(kind, sentence, weft.gradients, weft.sum([], wrong), [x])
    z = weft.custom_gradient([x], weft.round(x), lambda *given: {}["mine"])
    refused(KeyError, "mine", weft.gradients, weft.sum([], z), [x])
    assert weft.relu(x).dims == x.dims  # the graph goes on


def test_experts_say_what_they_took():
    losses = []
    for mesh, layout in (("", ""), ("data:2", "batch:data,experts:data")):
        g = weft.Graph(seed=1)
        batch, token, wide = weft.Dim("batch", 4), weft.Dim("token", 6), weft.Dim("wide", 8)
        experts = dict(experts=("experts", 4), top_k=2, chooser="WEFT_TOKENS_CHOOSE")
        x = g.input("x", [batch, token, wide], "f64")
        y, facts = weft.experts(x, name="experts", token=token, feature=wide, hidden=("hidden", 16), **experts)
        assert facts._fields == ("balance", "z", "dropped", "turned_away") and facts.dropped.dtype == "i32"
        block = dict(name="block", embed=wide, heads=("heads", 2), hidden=("hidden", 16),
                     self=dict(query=token, memory=token, feature=("kv", 4)))
        z, inside = weft.transformer(y, experts=dict(token=token, hidden=("hidden", 16), **experts), facts=True, **block)
        assert weft.transformer(y, **{**block, "name": "plain"}).dims == z.dims
        loss = weft.mean(z * z) + 0.01 * facts.balance + 0.01 * inside.balance
        program = weft.Program(weft.Mesh(mesh), layout, [loss, facts.dropped, inside.balance, weft.sgd(loss, rate=0.1)])
        program.write(x, np.random.default_rng(3).normal(size=(4, 6, 8)))
        program.run(3)
        assert 0 <= program.read(facts.dropped) <= 24 and program.read(inside.balance) >= 0.9
        losses.append(program.read(loss))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-10)


def counting(argument, field, sample, row, error):
    ctypes.c_int32.from_address(row).value = 10 * sample
    return 0


def test_data_sets_and_checkpoints_are_opened():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(bytes(range(200)))

        def trained():
            g = weft.Graph(seed=1)
            batch, seq = weft.Dim("batch", 4), weft.Dim("seq", 6)
            tokens, targets = (g.input(name, [batch, seq], "i32") for name in ("tokens", "targets"))
            w = g.variable("w", [("vocab", 256)], 1.0, "f64")
            loss = weft.mean(weft.gather(w, tokens, ("vocab", 256)))
            values = [loss, weft.sgd(loss, rate=1.0), tokens, targets]
            return weft.Program(weft.Mesh("data:2"), "batch:data", values), tokens, targets, w

        program, tokens, targets, w = trained()
        data = weft.text_open(os.path.join(folder, "text"), 6, 1)
        weft.dataset_start(data, program)
        weft.dataset_next(data, program)
        program.run()
        read = program.read(tokens)
        assert (program.read(targets) == read + 1).all() and (read[:, 0] % 6 == 0).all(), read
        assert weft.dataset_facts(data).startswith("text: ") and weft.dataset_facts(data).endswith("; seq: 6")
        weft.dataset_fact(data, "words", "of mine")
        assert 0 < weft.dataset_highest(data, "tokens") < 256
        refused(weft.Error, "and there are 3 ids, 0 to 2", weft.dataset_bound, weft.text_open(os.path.join(folder, "text"), 6, 1), "tokens", 3, 0)
        saved = weft.checkpoints_open(os.path.join(folder, "saved"), data=weft.dataset_facts(data))
        weft.checkpoints_save(saved, program, dict(step=1, sample=weft.dataset_position(data), seed=1))
        weft.checkpoints_wait(saved)
        weights = program.read(w)
        other, *_, w = trained()
        state = weft.checkpoints_restore(weft.checkpoints_open(os.path.join(folder, "saved")), other, -1)
        assert (state.step, state.sample, state.seed) == (1, 4, 1)
        np.testing.assert_array_equal(other.read(w), weights)
        other_data = weft.checkpoints_open(os.path.join(folder, "saved"), data="text: mine")
        refused(weft.Error, "words was of mine and is not said", weft.checkpoints_restore, other_data, other, -1)
        stored = weft.stored_open(os.path.join(folder, "saved"))
        assert weft.stored_state(stored) == state and weft.stored_tensor_at(stored, 0).name == "w"
        assert weft.stored_tensor_at(stored, 0).shape == (("vocab", 256),) and weft.stored_tensor_at(stored, 9) is None
        del program
        gc.collect()
        refused(weft.Error, "nothing", weft.text_open, os.path.join(folder, "nothing"), 6, 1)
    g = weft.Graph()
    numbers = g.input("numbers", [("batch", 3)], "i32")
    program = weft.Program(weft.Mesh(), "", weft.add(numbers, numbers))
    drawn = weft.samples_open(fields=[dict(name="numbers", dtype="i32")], n_samples=9, read=counting)
    gc.collect()
    weft.dataset_start(drawn, program)
    weft.dataset_next(drawn, program)
    program.run()
    assert program.read(program.values[0]).tolist() == [0, 20, 40] and repr(drawn) == "<weft.dataset>"


def test_samples_are_numbers_that_fit():
    def trained(mesh, layout, read, dtype):
        g = weft.Graph()
        image, label = g.input("image", [("batch", 3), ("pixel", 2)], dtype), g.input("label", [("batch", 3)], "i32")
        program = weft.Program(weft.Mesh(mesh), layout, [weft.add(image, image), weft.add(label, label)])
        data = weft.samples([dict(name="image", width=("pixel", 2), dtype=dtype), dict(name="label", dtype="i32")], 9, read)
        weft.dataset_start(data, program)
        weft.dataset_next(data, program)
        return program.read(image).tolist(), program.read(label).tolist()

    good = {"image": lambda sample: [sample, 0.5], "label": lambda sample: sample * 10}
    wrong = {"image": lambda sample: [1e39 if sample == 1 else 0, 0], "label": lambda sample: 2**32 + 1 if sample == 2 else 0}
    for mesh, layout in (("", ""), ("data:3", "batch:data")):
        for dtype in ("f32", "bf16", "f64"):
            assert trained(mesh, layout, lambda name, sample: good[name](sample), dtype) == ([[0, 0.5], [1, 0.5], [2, 0.5]], [0, 10, 20])
        refused(ValueError, "samples: image of sample 1 is f32, and element .0. is 1e.39", trained, mesh, layout,
                lambda name, sample: (wrong if name == "image" else good)[name](sample), "f32")
        refused(ValueError, "samples: label of sample 2 is i32, and the number is 4294967297", trained, mesh, layout,
                lambda name, sample: (wrong if name == "label" else good)[name](sample), "f32")
        refused(ValueError, r"was given an array of shape \(3,\)", trained, mesh, layout, lambda name, sample: [1, 2, 3], "f32")
        refused(KeyError, "mine", trained, mesh, layout, lambda name, sample: {}["mine"], "f32")


def test_every_dtype_goes_in_and_out():
    row = weft.Dim("row", 6)
    numbers = [0, 1, 2, 100, 200.4, 255]
    for name, array in weft.DTYPES.items():
        g = weft.Graph()
        x = g.input("x", [row], name)
        program = weft.Program(weft.Mesh("data:2"), "row:data", [weft.add(x, x), x])
        given = np.asarray(numbers).astype(array)
        program.write(x, given)
        found = program.read(x)
        assert found.dtype == array and x.dtype == name
        within = {"bf16": 2.0**-8, "f16": 2.0**-11}.get(name, 0)
        np.testing.assert_allclose(found, given, rtol=within)
        program.run()
        twice = given + given if name == "u8" else 2 * given.astype("float64")
        np.testing.assert_allclose(program.read(program.values[0]), twice, rtol=2 * within + 1e-7)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)

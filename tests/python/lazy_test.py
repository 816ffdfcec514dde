"""lazy_test.py ROOT [MESH [LAYOUT]]: lazy tensors: numbers beside numpy's, programs that are found again, gradients, layers and
optimizers to the bit of the graph API, functions that are recorded, what is refused. Under mpirun all processes do the same."""
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings

from start import np, root, weft

MESH, LAYOUT = (sys.argv[2:4] + ["data:2", "batch:data"][len(sys.argv[2:4]):])[:2]
warnings.simplefilter("ignore", RuntimeWarning)
IS_ALONE = "OMPI_COMM_WORLD_SIZE" not in os.environ and "PMI_SIZE" not in os.environ


def session(**options):
    return weft.session(MESH, LAYOUT, seed=3, **options)


def refused(kind, pattern, call):
    try:
        call()
    except kind as error:
        assert re.search(pattern, str(error)), error
        return error
    raise AssertionError(f"not refused: {pattern}")


def numbers(*shape, dtype="f4"):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(dtype)


def test_operators_are_numpys():
    session()
    a, b, w = numbers(8, 6), numbers(8, 6) + 3, numbers(6, 4)
    x, y, v = weft.tensor(a, "batch pixel"), weft.tensor(b, "batch pixel"), weft.tensor(w, "pixel digit")
    pairs = [(x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (2 - x, 2 - a), (x - 2, a - 2), (1 / y, 1 / b), (x ** 2, a ** 2),
             (-x, -a), (abs(x), abs(a)), (x @ v, a @ w), (x.T, a.T), (x.sum(), a.sum()), (x.sum("batch"), a.sum(0)), (x.mean("pixel"), a.mean(1)),
             (x.max("pixel"), a.max(1)), (x[2], a[2]), (x[-1, 1:3], a[-1, 1:3]), (x[1:7:2], a[1:7:2]), (x[..., 0], a[:, 0]),
             (x[{"pixel": 1}], a[:, 1]), (x > y, a > b), (x == x, a == a), (weft.relu(x), np.maximum(a, 0)), (x.reshape("row:16 of:3"), a.reshape(16, 3)),
             (weft.softmax(x, "pixel"), np.exp(a) / np.exp(a).sum(1, keepdims=True)), (np.float32(2) * x, 2 * a)]
    for at, (tensor, wanted) in enumerate(pairs):
        np.testing.assert_allclose(tensor.numpy(), wanted, rtol=2e-5, atol=1e-5, err_msg=str(at))
    assert x.dims == (("batch", 8), ("pixel", 6)) and x.shape == (8, 6) and x.dtype == "f32" and len(x) == 8
    assert (x @ v).dims == (("batch", 8), ("digit", 4)) and x.rename("pixel", "dot").dims[1] == ("dot", 6)
    n = weft.tensor(np.arange(4), "row")
    assert n.dtype == "i64" and (n + 1).tolist() == [1, 2, 3, 4] and (n // 2).tolist() == [0, 0, 1, 1] and bool((n[0] + 1).any())
    assert float(x.sum()) == x.sum().item() and f"{x.mean():.3f}" == f"{x.mean().item():.3f}"
    assert np.asarray(x).tolist() == a.tolist() and np.from_dlpack(x).tolist() == a.tolist()
    assert pickle.loads(pickle.dumps(x)).dims == x.dims
    fixed = numbers(4, 2)
    for at in range(2):  # nor is what nobody can write copied, from the first time on
        view = fixed[1:]
        view.flags.writeable = False
        assert not np.shares_memory(weft.tensor(view, "a b")._data(), fixed), at
    fixed.flags.writeable = False
    for part in (fixed, fixed[1:], fixed.T, fixed[::-1]):
        for at in range(2):
            x_of = weft.tensor(part, "a b")
            assert np.shares_memory(x_of._data(), fixed) == part.flags.c_contiguous and ((x_of * 1).numpy() == part).all(), at
    for dtype in ("f32", "f64", "bf16", "i64"):  # what was read goes on as what it is
        total = weft.tensor(np.arange(3), "row", dtype).sum()
        assert total.item() == 3 and total.numpy().shape == () and (total + total).item() == 6 and total.dtype == dtype, dtype
    before = a.copy()
    doubled = x * 2
    a[:] = 0
    np.testing.assert_allclose(doubled.numpy(), 2 * before)  # what a tensor was made of may change
    assert "batch:8" in repr(x) and "<svg" in x._repr_html_() and (not LAYOUT or x.spec == LAYOUT)


def test_a_loop_compiles_once_and_says_when_again():
    s = session()
    x, w = weft.tensor(numbers(8, 6), "batch pixel"), weft.Variable("w", "pixel:6 digit:4", weft.normal(0.0, 1.0))
    counts = []
    for trip in range(4):
        y = (x @ w).sum() * 2
        y.item()
        x = weft.tensor(numbers(8, 6) + trip, "batch pixel")
        counts.append(len(s.programs))
    assert counts == [1] * 4, counts
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for rate in (0.5, 0.25):
            (x * rate).sum().item()
        for rows in (8, 4):
            part = weft.tensor(numbers(rows, 6), "batch pixel")
            part.sum().item()
    said = [str(warning.message) for warning in said if warning.category is weft.Recompiled]
    assert len(said) == 2 and "by 0.25 and had 0.5" in said[0] and "[batch:4, pixel:6] f32 and was [batch:8, pixel:6]" in said[1], said
    y = x
    for _ in range(20):
        y = y * 0.5 + x
    assert len(s.pending) >= 20
    y.numpy()
    assert s.pending == []


def test_gradients():
    session()
    a, m = numbers(8, 6, dtype="f8"), numbers(6, 4, dtype="f8")
    x, w = weft.tensor(a, "batch pixel"), weft.Variable("w", "pixel:6 digit:4", weft.normal(0.0, 1.0), "f64")
    w.write(m)
    loss = ((x @ w) ** 2).sum()
    loss.item()  # what was read is differentiable still
    np.testing.assert_allclose(weft.grad(loss, w).numpy(), 2 * a.T @ (a @ m), rtol=1e-10)
    loss.backward()
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), 4 * a.T @ (a @ m), rtol=1e-10)
    w.grad = None
    assert w.grad is None
    cube = (x * x * x).sum()
    slope = weft.grad(cube, x)
    np.testing.assert_allclose(weft.grad(slope.sum(), x).numpy(), 6 * a, rtol=1e-10)  # of a gradient
    with weft.Tape() as tape:
        z = weft.tensor(a, "batch pixel")
        tape.watch(z)
        y = (z * z)
        y.numpy()
        np.testing.assert_allclose(tape.gradient(y.sum(), z).numpy(), 2 * a)
        np.testing.assert_allclose(tape.gradient((y * y).sum(), z).numpy(), 4 * a ** 3)
    refused(weft.Error, "a float scalar is wanted", lambda: weft.grad(x, x))
    refused(weft.Error, "depends on no variable", lambda: x.sum().backward())
    old = ((x @ w) ** 2).sum()
    old.item()
    w.assign(w * 2)
    np.testing.assert_allclose(w.numpy(), 2 * m)
    refused(weft.Error, "w as it was before it changed", lambda: weft.grad(old, w).numpy())
    assert old.item() > 0  # what was read stays


class Net(weft.Module):
    def __init__(self):
        self.first = weft.Dense(in_="pixel", out="hidden:8", activation="relu")
        self.blocks = [weft.Norm(feature="hidden:8"), weft.Dense(in_="hidden", out="digit:3")]
        self.scale = weft.Parameter("digit:3", 1.0)

    def forward(self, x):
        for block in [self.first, *self.blocks]:
            x = block(x)
        return x * self.scale


def graph_losses(images, labels, steps, rate):
    """The same by the graph API, as C does it."""
    batch, pixel, hidden, digit = ("batch", 12), ("pixel", 5), ("hidden", 8), ("digit", 3)
    g = weft.Graph(3)
    x, y = g.input("x", [batch, pixel]), g.input("y", [batch], "i32")
    h = weft.norm(weft.dense(x, name="first", in_=[pixel], out=[hidden], activation="relu"), name="blocks0", feature=hidden)
    h = weft.dense(h, name="blocks1", in_=[hidden], out=[digit]) * g.variable("scale", [digit], 1.0)
    loss = weft.mean(weft.cross_entropy(h, y, digit))
    program = weft.Program(weft.Mesh(MESH), LAYOUT, [loss, weft.adam(loss, rate=rate)])
    program.write(x, images)
    program.write(y, labels)
    found = []
    for _ in range(steps):
        program.run()
        found.append(program.read(loss))
    return found


def test_training_is_to_the_bit_that_of_the_graph():
    images, labels = numbers(12, 5), np.arange(12) % 3
    wanted = graph_losses(images, labels, 6, 0.01)
    for way in ("step of a loss", "backward", "jit"):
        s = session()
        net = Net()
        optimizer = weft.Adam(net, rate=0.01) if way == "backward" else weft.Adam(rate=0.01)

        def step(x, y):
            loss = weft.mean(weft.cross_entropy(net(x), y, "digit"))
            if way == "backward":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            else:
                optimizer.step(loss)
            return loss

        step = weft.jit(step) if way == "jit" else step
        found = [step(weft.tensor(images, "batch pixel"), weft.tensor(labels, "batch", "i32")).item() for _ in range(6)]
        assert found == wanted or way == "backward" and np.allclose(found, wanted, rtol=1e-6), (way, found, wanted)
        names = [name for name, _ in net.named_parameters()]
        assert sorted(names) == ["blocks0/bias", "blocks0/gain", "blocks1/bias", "blocks1/weight", "first/bias", "first/weight", "scale"], names
        assert len(s.programs) <= 2, s
    saved = net.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        if IS_ALONE:
            net.save(folder + "/run", 6)
            net.load_state_dict({name: 0 * array for name, array in saved.items()})
            net.load(folder + "/run")
            for name, array in net.state_dict().items():
                np.testing.assert_array_equal(array, saved[name])
    refused(KeyError, "no frist/weight; did you mean first/weight", lambda: net.load_state_dict({"frist/weight": 0}))
    refused(TypeError, r"no option actvation; did you mean activation", lambda: weft.Dense(in_="pixel", actvation="relu"))
    refused(weft.Error, "it has no name", lambda: weft.Dense(in_="pixel", out="a:2")(weft.tensor(images, "batch pixel")))


def test_training_goes_on_from_a_checkpoint_to_the_bit():
    """In a session that has no variable yet, and in one whose net was called: slots of the optimizer and its steps go on too."""
    folder = tempfile.mkdtemp() if IS_ALONE else os.path.join(os.environ["WEFT_TEST_FOLDER"], str(os.getppid()))
    images, labels = numbers(12, 5), np.arange(12) % 3

    def trained(begin, end, before=lambda net: None):
        s, net, optimizer, found = session(), Net(), weft.Adam(rate=0.01), []
        before(net)
        for step in range(begin, end):
            loss = weft.mean(weft.cross_entropy(net(weft.tensor(images + step, "batch pixel")), weft.tensor(labels, "batch", "i32"), "digit"))
            optimizer.step(loss)
            found.append(loss.item())
            if begin == 0 and step == 2:
                net.save(folder)
        assert s.steps == end
        return found

    def take_up(net):
        assert net.load(folder).step == 3

    def call_and_take_up(net):
        net(weft.tensor(images, "batch pixel")).numpy()
        take_up(net)

    wanted = trained(0, 6)[3:]
    for before in (take_up, call_and_take_up):
        assert trained(3, 6, before) == wanted, before
    weft.tensor(0.0).item()
    if weft.Session.now().is_root:
        shutil.rmtree(folder)


def test_another_batch_goes_on_with_the_same_optimizer():
    """Two programs, one count of steps, the same slots: as one program of two batches would not be, so beside numpy."""
    session()
    w = weft.Variable("w", "pixel:1", 1.0, "f64")
    optimizer, mean, square, value = weft.Adam(rate=0.1), 0.0, 0.0, 1.0
    for step, rows in enumerate((4, 2, 4, 2), 1):
        optimizer.step((w.sum() * weft.tensor(np.full(rows, float(step)), "batch")).sum())
        slope = float(step * rows)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope ** 2
        value -= 0.1 * (mean / (1 - 0.9 ** step)) / ((square / (1 - 0.999 ** step)) ** 0.5 + 1e-8)
        np.testing.assert_allclose(w.numpy(), [value], rtol=1e-9)
    optimizer.rate = 0.0
    optimizer.step((w * w).sum())
    np.testing.assert_allclose(w.numpy(), [value], rtol=1e-9)
    weft.session(MESH, "bacth:" + MESH.split(":")[0] if MESH else "")
    if MESH:
        v = weft.Variable("v", "batch:4", 1.0)
        refused(weft.Error, "bacth.*batch", lambda: weft.Sgd(rate=1.0).step(v.sum()))


def test_functions_that_are_recorded():
    s = session()
    a = numbers(8, 6)
    x, w = weft.tensor(a, "batch pixel"), weft.Variable("w", "pixel:6 digit:4", weft.normal(0.0, 1.0))
    traced = []

    @weft.jit
    def f(x, by=1):
        traced.append(by)
        return {"y": (x @ w) * by, "mean": x.mean()}

    for by in (1, 1, 2, 1):
        np.testing.assert_allclose(f(x, by)["y"].numpy(), by * (a @ w.numpy()), rtol=1e-5, atol=1e-6)
    assert traced == [1, 2]

    @weft.jit
    def chooses(x):
        return x if x.sum() > 0 else -x

    refused(TypeError, r"lazy_test.py:\d+: in jit chooses the numbers of a tensor", lambda: chooses(x))
    assert s.trace is None and (x + 1).numpy().shape == (8, 6)
    last, sums = weft.scan(lambda h, p: (h + p, h), weft.tensor(np.zeros(8, "f4"), "batch"), x, over="pixel")
    np.testing.assert_allclose(last.numpy(), a.sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums.numpy(), np.concatenate([np.zeros((1, 8)), a.cumsum(1).T[:-1]]), rtol=1e-5, atol=1e-6)
    doubled = weft.while_loop(lambda v: v < 100, lambda v: v * 2, weft.tensor(1.0))
    assert doubled.item() == 128
    for sign in (1, -1):
        flag = (weft.tensor(float(sign)) > 0)
        assert weft.cond(flag, lambda v: v + 1, lambda v: v - 1, weft.tensor(5.0)).item() == 5 + sign
    np.testing.assert_allclose(weft.vmap(lambda row: (row * row).sum(), "batch")(x).numpy(), (a * a).sum(1), rtol=1e-5)
    refused(ValueError, "vmap: mean gives .* has lost batch", lambda: weft.vmap(weft.mean, "batch")(x))
    slopes = weft.grad(weft.scan(lambda h, p: (h * p, None), weft.tensor(np.ones(8, "f4"), "batch"), x, over="pixel")[0].sum(), x)
    np.testing.assert_allclose(slopes.numpy(), a.prod(1, keepdims=True) / a, rtol=1e-3, atol=1e-5)
    refused(ValueError, "scan: the carry is", lambda: weft.scan(lambda h, p: (p, None), weft.tensor(1.0), x, over="pixel"))


def test_random_numbers_are_new_each_time():
    session()
    drawn = [weft.random_normal("f32", "row:5", 0.0, 1.0).numpy().tolist() for _ in range(3)]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]
    x = weft.tensor(np.ones((40, 50), "f4"), "batch pixel")
    kept = [weft.dropout(x, 0.5).numpy() for _ in range(2)]
    assert (kept[0] != kept[1]).any() and 0.4 < (kept[0] == 0).mean() < 0.6
    again = session()
    assert weft.random_normal("f32", "row:5", 0.0, 1.0).numpy().tolist() == drawn[0] and again.draws == 1


def test_layers_change_their_averages_with_the_step():
    session()
    x, norm = weft.tensor(numbers(8, 6), "batch pixel"), weft.BatchNorm(name="norm", channel="pixel")
    loss = (norm(x) ** 3).mean()
    weft.Sgd(rate=0.1).step(loss)
    mean = {one.name: one for one in norm.parameters()}["norm/mean"].numpy()
    assert (mean != 0).all() and np.allclose(mean / x.numpy().mean(0), (mean / x.numpy().mean(0))[0], rtol=1e-3)


def test_data_comes_in_batches():
    session()
    images, labels = numbers(10, 6), np.arange(10)
    seen = []
    for x, y in weft.Batches(4, (images, "batch pixel"), (labels, "batch"), seed=1):
        np.testing.assert_array_equal(x.numpy(), images[y.numpy()])
        seen += y.tolist()
    assert len(seen) == 8 == len(set(seen))


def test_mistakes_are_sentences():
    s = session()
    x = weft.tensor(numbers(8, 6), "batch pixel")
    ones = np.ones(6)
    for strange in (lambda: x + ones, lambda: ones + x, lambda: x @ ones, lambda: ones @ x):
        refused(TypeError, "dims have no names", strange)
    refused(ValueError, "no dim pixl; did you mean pixel", lambda: x.sum("pixl"))
    refused(ValueError, "no dim pixl; did you mean pixel", lambda: weft.softmax(x, "pixl"))
    refused(ValueError, "the truth of .* of many", lambda: bool(x))
    refused(ValueError, "the left has pixel last", lambda: x @ weft.tensor([1.0], "row"))
    refused(IndexError, "20 is past batch:8", lambda: x[20])
    refused(ValueError, "1 dims are named", lambda: weft.tensor(np.ones((2, 2)), "a"))
    refused(TypeError, "complex64", lambda: weft.tensor(np.ones(2, "c8"), "a"))
    refused(TypeError, "a quotient has a fraction", lambda: weft.tensor([1, 2], "a") / 2)
    refused(ValueError, "masked", lambda: weft.tensor(np.ma.masked_equal([1.0, 2.0], 2.0), "a"))
    refused(weft.Error, r"add at lazy_test\.py:\d+.*same size|add at .*lazy_test\.py:\d+.*same size", lambda: x + weft.tensor([1.0, 2.0], "batch"))
    refused(TypeError, "a value of a graph", lambda: x + weft.Graph().input("v", [("batch", 8)]))
    refused(TypeError, "not for lazy tensors", lambda: weft.scan_carry(x))
    for order in ("C", "F"):
        np.testing.assert_array_equal(weft.tensor(np.array(numbers(3, 4), order=order)[::-1, ::2], "a b").numpy(), numbers(3, 4)[::-1, ::2])
    s.close()
    refused(weft.Error, "closed", lambda: (x + 1).numpy() if weft.Session.current is s else (s.check()))
    mesh = weft.Mesh("")
    mesh.close()
    refused(weft.Error, "this mesh is closed", lambda: mesh.axes)
    names = [name for name in dir(weft) if name.startswith("_") or name in ("json", "os", "ctypes", "numpy", "warnings", "weakref", "has_raised")]
    assert names == [], names
    assert "Adam" in dir(weft) and "BatchNorm" in dir(weft) and "activation" in weft.dense.__doc__ and "x W + b" in weft.dense.__doc__


def test_several_ranks_without_a_layout_are_one_warning():
    if not MESH:
        return "on several ranks"
    g = weft.Graph()
    x = g.input("x", [("row", 4)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        weft.Program(weft.Mesh(MESH), "", weft.relu(x))
    assert len(said) == 1 and "no layout: each computes everything" in str(said[0].message) and said[0].filename.endswith("lazy_test.py"), said


def interrupted(progress, work):
    """Ctrl-C once so much has been done, whatever the time that it takes."""
    begun = progress()

    def watch():
        while progress() < begun + 20:
            time.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
        raise AssertionError("nothing stopped it")
    except KeyboardInterrupt:
        pass
    watcher.join()


def test_ctrl_c_stops_a_run_and_the_session_lives():
    if not IS_ALONE:
        return "in one process alone"
    session()
    x = weft.tensor(numbers(8, 6), "batch pixel")
    w = weft.Variable("w", "pixel:6", 0.5)

    def loop():
        for _ in range(10 ** 9):
            w.assign(w * 0.5 + 0.25)

    interrupted(lambda: w.state.version, loop)
    np.testing.assert_array_equal(w.numpy(), np.full(6, 0.5, "f4"))
    assert np.allclose((x @ w).numpy(), x.numpy() @ w.numpy(), rtol=1e-5)
    g = weft.Graph()
    program = weft.Program(weft.Mesh(MESH), LAYOUT, weft.relu(g.variable("v", [("batch", 4), ("pixel", 1)], 1.0)))
    interrupted(lambda: weft.c.lib.weft_runs(program.handle), lambda: program.run(10 ** 9))
    program.run()
    assert program.read("v").tolist() == [[1]] * 4


def stopped_inside(work, program):
    """Ctrl-C while the main thread is in a run, where others have Python to themselves; again, where it came a moment too early."""
    main = threading.get_ident()

    def watch():
        while sys._current_frames()[main].f_code.co_name != "_run_once":
            time.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(20):
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            work()
            watcher.join()
        except KeyboardInterrupt:
            watcher.join()
        if weft.c.lib.weft_was_stopped(program().handle):
            return
    raise AssertionError("no run was stopped")


def test_ctrl_c_stops_inside_a_run():
    if not IS_ALONE:
        return "in one process alone"
    s = session()
    w = weft.Variable("w", "batch:8 pixel:6", 0.5)
    before = [w.numpy()]

    def work():
        before.append(w.numpy())
        w.assign(weft.scan(lambda h, trip: (h.tanh() + 1, None), w * 1, trips=2 ** 20)[0])

    stopped_inside(work, lambda: list(s.programs.values())[-1].program)
    np.testing.assert_array_equal(w.numpy(), before[-1])
    w.assign(w * 2)
    np.testing.assert_array_equal(w.numpy(), 2 * before[-1])
    g = weft.Graph()
    v = g.variable("v", [("batch", 8), ("pixel", 6)], 0.5)
    trip = weft.scan_begin(g, 2 ** 20)
    h = weft.scan_carry(v)
    weft.scan_next(h, weft.tanh(h) + 1.0)
    weft.scan_end(trip)
    program = weft.Program(weft.Mesh(MESH), LAYOUT, [weft.scan_last(h), v])
    stopped_inside(program.run, lambda: program)
    assert (program.read(v) == 0.5).all()
    refused(weft.Error, "the last one was stopped", lambda: program.read(program.values[0]))


def test_threads_and_forks():
    if not IS_ALONE:
        return "in one process alone"
    s = session()
    x, found = weft.tensor(numbers(8, 6), "batch pixel"), []

    def work(by):
        for _ in range(5):
            found.append(np.allclose((x * by).numpy(), by * numbers(8, 6)))

    threads = [threading.Thread(target=work, args=(by,)) for by in (1.0, 2.0, 3.0, 4.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20
    child = os.fork()
    if child == 0:
        status = 1
        try:
            (x + 1).numpy()
        except weft.Error as error:
            status = 0 if "forked" in str(error) else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert (x + 1).numpy().shape == (8, 6) and not s.is_closed


def test_tracebacks_end_in_the_users_line():
    if not IS_ALONE:
        return "in one process alone"
    import subprocess

    code = "import weft\nx = weft.tensor([1.0], 'a')\ny = x.sum('b')\n"
    environment = {**os.environ, "PYTHONPATH": os.path.join(root, "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stderr.splitlines()
    assert [line for line in said if line.startswith("  File")] == ['  File "<string>", line 3, in <module>'], said
    assert "there is no dim b" in said[-1], said


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.process_time()
            print(name, "-", test() or "ok", f"{time.process_time() - began:.2f} s" if "--times" in sys.argv else "", flush=True)

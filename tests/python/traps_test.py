"""traps_test.py ROOT: what goes wrong by itself is a Python exception with a sentence, and no crash and no hang: arrays of other orders
and kinds, numpy's own functions, use after close, a fork while another thread computes, functions that raise or return nothing.

LIBWEFT names the library. Exit status 77: numpy is not here."""
import os
import pickle
import re
import subprocess
import sys
import threading
import time

from start import np, root, weft

PATIENCE = 60  # seconds until a child that hangs is ended


def refused(kind, pattern, call):
    try:
        made = call()
    except kind as error:
        assert re.search(pattern, str(error)), error
        return error
    raise AssertionError(f"not refused: {pattern}; it gave {made!r}")


def some():
    return weft.tensor(np.arange(6, dtype="f4").reshape(2, 3), "a b")


def test_arrays_of_any_order_have_their_numbers():
    whole = np.arange(24, dtype="f4").reshape(4, 6)
    others = [np.asfortranarray(whole), whole[::2, ::3], whole[::-1, ::-1], whole.T, whole.astype(">f4"), np.broadcast_to(np.float32(3), (2, 5)),
              np.matrix(whole), whole.view(type("Other", (np.ndarray,), {})), whole.astype(">i8"), whole.astype("f8")[:, 1:2]]
    for array in others:
        assert np.array_equal(weft.tensor(array, "a b").numpy(), np.asarray(array)), array
    for bad in (whole.astype("c8"), np.array([["x"]]), np.array([[None]], dtype=object), np.zeros((2, 2), "M8[D]"), np.zeros((1, 1), [("x", "f4")])):
        refused(TypeError, "Weft has f32", lambda: weft.tensor(bad, "a b"))
    refused(ValueError, "masked", lambda: weft.tensor(np.ma.masked_array(whole, whole > 3), "a b"))
    refused(ValueError, "a is there twice", lambda: weft.tensor(whole, "a a"))
    refused(TypeError, "dims are None", lambda: weft.tensor(whole, None))


def test_numpys_ways_are_told_ours():
    x = some()
    assert np.sum(x).item() == 15 and np.mean(x).item() == 2.5 and np.max(x).item() == 5
    refused(TypeError, r'sum: axis is none .* as .sum\("batch"\)', lambda: np.sum(x, axis=0))
    refused(TypeError, "array of shape .2, 3. is no place .* weft.where", lambda: x[np.ones((2, 3), bool)])
    refused(TypeError, "not written in place; weft.where", lambda: x.__class__.__setitem__(x, 0, 1))
    refused(TypeError, "x is an array of shape .3,., whose dims have no names", lambda: weft.relu(np.ones(3)))
    refused(AttributeError, "a tensor has no summ; did you mean sum", lambda: x.summ)
    assert not hasattr(x, "__array_interface__") and pickle.loads(pickle.dumps(x)).numpy().sum() == 15


def test_dims_by_numbers_and_masks_as_ids_are_told_ours():
    x = weft.tensor(np.ones((2, 3), "f4"), "batch pixel")
    refused(TypeError, 'sum: 0 is no dim; dims are named, as "batch", and there are batch, pixel', lambda: x.sum(0))
    refused(TypeError, "softmax: dim is -1; a dim", lambda: x.softmax(-1))
    refused(TypeError, "mean: axis is none of a tensor's; dims are named, as .mean", lambda: np.mean(x, axis=1))
    refused(IndexError, "weft.where chooses by a mask", lambda: x[x > 2])


def test_numpy_on_the_left_and_its_functions():
    x = weft.tensor(np.arange(1, 7, dtype="f4").reshape(2, 3), "batch pixel")
    for of in (np.float32, np.int64, np.float64):
        two = of(2)
        for made, wanted in ((two + x, 2 + x), (two - x, 2 - x), (two * x, 2 * x), (two / x, 2 / x), (two ** x, 2 ** x), (two < x, x > 2),
                             (two >= x, x <= 2), (two == x, x == 2), (two % x, 2 % x), (np.asarray(two) * x, 2 * x)):
            assert isinstance(made, weft.Tensor) and made.dtype == wanted.dtype and np.allclose(made, wanted)
    for made in (np.float32(2) + x, np.float32(2) / x, x / 2, np.sum(x), np.mean(x)):
        assert made._weft_node.place[0].co_filename == __file__
    array = np.ones((2, 3), "f4")
    for call in (lambda: array + x, lambda: array @ x, lambda: array < x, lambda: x * array, lambda: [1, 2] - x):
        refused(TypeError, "weft.tensor.array, .batch pixel", call)
    refused(TypeError, "numpy.exp computes with arrays.* weft.exp is the op, and .numpy", lambda: np.exp(x))
    refused(TypeError, "numpy.absolute computes with arrays.* weft.abs is the op", lambda: np.abs(x))
    refused(TypeError, "numpy.hypot computes with arrays, and it was given a lazy tensor: .numpy", lambda: np.hypot(x, 1.0))
    refused(TypeError, "numpy.add computes with arrays", lambda: np.add(array, x, out=array))
    refused(TypeError, "numpy.add computes with arrays", lambda: np.add.reduce(x))
    assert (array == 1).all()


def test_options_of_optimizers_are_looked_at_at_once():
    refused(TypeError, "adam has no option rat; did you mean rate", lambda: weft.Adam(rat=1))
    refused(TypeError, "it is a lazy tensor", lambda: weft.Adam(rate=0.1).step(np.ones(3)))


def test_a_variable_begins_as_an_array():
    numbers = np.arange(6, dtype="f4").reshape(2, 3)
    w = weft.Variable("traps/begun", "batch:2 pixel:3", numbers)
    assert (w.numpy() == numbers).all()
    w.assign(w + 1)
    numbers[:] = 7
    again = weft.Variable("traps/begun", "batch:2 pixel:3", numbers)  # it is there: what it would begin as is past
    assert (again.numpy() == 1 + np.arange(6).reshape(2, 3)).all()
    refused(ValueError, r"it has the shape \(2,\)", lambda: weft.Variable("traps/wrong", "batch:2", numbers))
    assert weft.Variable("traps/wrong", "batch:2", [1, 2]).tolist() == [1, 2]


def test_what_is_of_this_process_is_not_pickled():
    for one in (weft.Session.now(), weft.Mesh(""), weft.Graph()):
        refused(TypeError, "is of this process", lambda: pickle.dumps(one))


def test_what_was_closed_is_refused():
    graph = weft.Graph()
    x = graph.input("x", [("n", 3)])
    y = weft.relu(x)
    mesh = weft.Mesh("")
    program = weft.Program(mesh, "", [y])
    program.close()
    refused(weft.Error, "this program is closed", lambda: program.read(y))
    graph.close()
    for use in (lambda: weft.relu(y), lambda: x + y, lambda: x * 2.0, lambda: repr(y), lambda: weft.gradients(y, [x]),
                lambda: weft.Program(mesh, "", [y]), lambda: graph.input("z", [("n", 3)])):
        refused(weft.Error, "this graph is closed; make another", use)
    mesh.close()
    refused(weft.Error, "this mesh is closed", lambda: weft.Program(mesh, "", [weft.relu(weft.Graph().input("x", [("n", 3)]))]))


def test_a_layout_of_another_mesh_is_refused_at_once():
    before = weft.Session.now()
    refused(weft.Error, "has no axis dat; did you mean data", lambda: weft.session("data:2", "batch:dat"))
    assert weft.Session.now() is before and some().sum().item() == 15


def test_an_error_goes_to_another_process():
    error = refused(weft.Error, "operand1 is .b:4", lambda: some() * weft.tensor(np.ones(4, "f4"), "b"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is weft.Error and str(again) == str(error) and again.status == error.status == "usage"


def test_functions_that_are_recorded_may_raise_or_return_nothing():
    def fails(*given):
        raise ZeroDivisionError("its own")

    x = some()
    for use in (lambda: weft.jit(fails)(x), lambda: weft.while_loop(fails, lambda c: c, x), lambda: weft.while_loop(lambda c: c.sum() < 1, fails, x),
                lambda: weft.cond(x.sum() > 0, fails, lambda: x), lambda: weft.vmap(fails, "a")(x), lambda: weft.scan(fails, x, x, over="a")):
        refused(ZeroDivisionError, "its own", use)
    refused(TypeError, "jit nothing: it returned None; a function that is recorded returns tensors", lambda: weft.jit(nothing)(x))
    assert (x + x).numpy().sum() == 30


def nothing(x):
    return None


def test_a_library_that_cannot_be_loaded_is_one_sentence():
    environment = {**os.environ, "LIBWEFT": os.path.join(root, "README.md"), "PYTHONPATH": os.path.join(root, "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run([sys.executable, "-c", "import weft"], env=environment, capture_output=True, text=True).stderr.splitlines()
    assert re.match("ImportError: weft: .*README.md cannot be loaded: ", said[-1]), said


def status_of(child):
    """The child's exit status; -1: it hung."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def in_child(x):
    """The parent's session is refused, whatever its threads were doing; one of its own computes."""
    try:
        (x * 2).sum().item()
        return 3
    except weft.Error as error:
        if "belongs to the process that was forked" not in str(error):
            return 4
    weft.session("data:2", "a:data")
    return 0 if (some() * 2).sum().item() == 30 else 5


def test_a_fork_while_another_thread_computes():
    x, is_done = some(), threading.Event()

    def compute():
        a, b = weft.tensor(np.ones((60, 60), "f4"), "i j"), weft.tensor(np.ones((60, 60), "f4"), "j k")
        while not is_done.is_set():
            (a @ b).sum().item()

    thread = threading.Thread(target=compute)
    thread.start()
    time.sleep(0.1)
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                try:
                    os._exit(in_child(x))
                finally:
                    os._exit(9)
            assert (status := status_of(child)) == 0, f"status {status} of a child"
    finally:
        is_done.set()
        thread.join()
    assert (x + 1).sum().item() == 21


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)

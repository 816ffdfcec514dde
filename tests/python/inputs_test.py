"""inputs_test.py ROOT [MESH LAYOUT]: a tensor has the numbers that its array had when it was made, however often a line makes one, whoever
keeps it, reads it, writes the array again or closes the session: also where the numbers went into a program at once.

Without a mesh on one rank and on two of this process."""
import os
import sys
import threading
import warnings

from start import np, weft

MESHES = [sys.argv[2:4]] if len(sys.argv) > 3 else [["", ""], ["data:2", "batch:data"]]
ROWS, COLUMNS = 6, 5
warnings.simplefilter("ignore", weft.Recompiled)


def made(array, dims="batch pixel"):
    return weft.tensor(array, dims)  # all tensors of this file come of this line


def is_held(tensor):
    """Whether its numbers are in a program alone."""
    return tensor._node.data is None


def fresh(random):
    return random.normal(size=(ROWS, COLUMNS)).astype("f4")


def loss_of(tensor):
    return (tensor * 2.0).sum().item()


def is_near(a, b):
    return abs(a - b) < 1e-4 * (1 + abs(b))


def test_a_line_that_goes_on_copies_once():
    if len(sys.argv) > 3:
        return "skipped: of one rank alone"
    with weft.Session():
        random, held = np.random.default_rng(0), []
        array = fresh(random)
        for _ in range(6):
            array[:] = fresh(random)
            x = made(array)
            held.append(is_held(x))
            assert is_near(loss_of(x), 2 * float(array.sum(dtype="f8")))
            del x
        assert held == [False] + 5 * [True], held
        kept = made(array)  # while somebody has one, the next has numbers of its own
        assert is_held(kept) and not is_held(made(array))
        with weft.Session("", "") as other:
            assert not is_held(made(array))
            other.close()


def test_numbers_stay_those_of_the_array_as_it_was():
    """Tensors are made, kept, read, dropped and computed with in any order, by one line, and their arrays are written again."""
    for mesh in MESHES:
        random = np.random.default_rng(1)
        with weft.Session(*mesh):
            array, kept, seen = fresh(random), [], set()
            scale = weft.Variable("scale", f"pixel:{COLUMNS}", 1.0)
            for step in range(300):
                array[:] = fresh(random)
                what = int(random.integers(6))
                if what == 0:
                    kept.append((made(array), array.copy()))
                elif what == 1:
                    assert is_near(loss_of(made(array)), 2 * float(array.sum(dtype="f8")))
                elif what == 2 and kept:
                    tensor, was = kept[int(random.integers(len(kept)))]
                    seen.add(is_held(tensor))
                    assert is_near(loss_of(tensor), 2 * float(was.sum(dtype="f8")))
                elif what == 3 and kept:
                    tensor, was = kept.pop(int(random.integers(len(kept))))
                    assert (tensor.numpy() == was).all() and (np.asarray(tensor) == was).all()
                elif what == 4:
                    both = [made(array), made(2 * array)]
                    assert np.allclose((both[1] - both[0] * scale).numpy(), array)
                else:
                    waits = made(array) * 2.0  # recorded, and computed when its array is another
                    was = array.copy()
                    array[:] = 7
                    assert np.allclose(made(array).numpy(), 7) and np.allclose(waits.numpy(), 2 * was)
            for tensor, was in kept:
                assert (tensor.numpy() == was).all()
            if mesh == ["", ""]:
                assert seen == {False, True}, seen


def test_a_session_that_is_closed_leaves_what_was_made():
    if len(sys.argv) > 3:
        return "skipped: of one rank alone"
    array = np.ones((ROWS, COLUMNS), "f4")
    session = weft.Session()
    with session:
        for _ in range(2):
            assert loss_of(made(array)) == 2 * array.size
        x = made(array)
        assert is_held(x)
        array[:] = 3
    session.close()
    assert (x.numpy() == 1).all()


def test_a_child_has_what_its_parent_made():
    if len(sys.argv) > 3:
        return "skipped: of one rank alone"
    array = np.ones((ROWS, COLUMNS), "f4")
    with weft.Session():
        for _ in range(2):
            assert loss_of(made(array)) == 2 * array.size
        x = made(array)
        assert is_held(x)
        child = os.fork()
        if child == 0:
            status = 9
            try:
                status = 0 if (x.numpy() == 1).all() else 1
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert loss_of(x) == 2 * array.size


def test_threads_make_tensors_while_others_compute():
    if len(sys.argv) > 3:
        return "skipped: of one rank alone"
    failures = []
    with weft.Session():
        def work(seed):
            random = np.random.default_rng(seed)
            try:
                for _ in range(100):
                    array = fresh(random)
                    x = made(array)
                    was, array[:] = float(array.sum(dtype="f8")), 0
                    assert is_near(loss_of(x), 2 * was)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures


def test_functions_that_are_recorded_take_them():
    for mesh in MESHES:
        with weft.Session(*mesh):
            @weft.jit
            def twice(x):
                return (x * 2.0).sum()

            array, random = np.empty((ROWS, COLUMNS), "f4"), np.random.default_rng(2)
            for _ in range(5):
                array[:] = fresh(random)
                assert is_near(twice(made(array)).item(), 2 * float(array.sum(dtype="f8")))
            x = made(array)
            first = twice(x)
            array[:] = 1
            assert is_near(twice(made(array)).item(), 2 * array.size) and is_near(first.item(), twice(x).item())


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)

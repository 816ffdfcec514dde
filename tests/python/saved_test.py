"""saved_test.py CHECKOUT WEFT [MESH LAYOUT]: weft.save and weft.load, and what `weft run` (the program WEFT) makes of the same file: the
numbers of the net that was saved, on other meshes too, frozen, to the bit where the mesh is the same."""
import os
import subprocess
import sys
import tempfile
import threading

from start import np, root, weft

PROGRAM, MESH, LAYOUT = (sys.argv[2:] + ["", ""])[:3]
IS_ALONE = not os.environ.get("OMPI_COMM_WORLD_SIZE")
FOLDER = tempfile.mkdtemp() if IS_ALONE else os.environ["WEFT_TEST_FOLDER"]
random = np.random.default_rng(0)


def refused(kind, words, call):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"taken: {words}")


class Net(weft.Module):
    def __init__(self):
        self.first = weft.Dense(in_="pixel", out="hidden:8", activation="relu")
        self.norm = weft.BatchNorm(channel="hidden")
        self.last = weft.Dense(in_="hidden", out="digit:3")

    def forward(self, image):
        return {"logits": self.last(weft.dropout(self.norm(self.first(image)), 0.5)), "size": (image * image).sum()}


def trained():
    session, net, optimizer = weft.session(MESH, LAYOUT, seed=1), Net(), weft.Adam(rate=0.05)
    image = weft.tensor(random.normal(size=(8, 6)).astype("f4"), "batch pixel")
    for _ in range(3):
        optimizer.step((net(image)["logits"] ** 2).mean())
    return session, net, image


def by_hand(net, image):
    """What the net gives for inference: no dropout, the norm by its averages."""
    of = net.state_dict()
    h = np.maximum(image @ of["first/weight"] + of["first/bias"], 0)
    h = (h - of["norm/mean"]) / np.sqrt(of["norm/variance"] + 1e-5) * of["norm/gain"] + of["norm/bias"]
    return h @ of["last/weight"] + of["last/bias"]


def run(*words):
    made = subprocess.run([PROGRAM, "run", *words], capture_output=True, text=True)
    return made.returncode, made.stdout, made.stderr


def test_a_net_is_loaded_without_its_code():
    session, net, image = trained()
    path = os.path.join(FOLDER, "net.weft")
    weft.save(path, net, image)
    wanted = by_hand(net, image.numpy())
    loaded = weft.load(path)
    found = loaded(image=image)
    assert loaded.is_frozen and list(loaded.inputs) == ["image"] and list(loaded.outputs) == ["logits", "size"], loaded
    assert "image [batch:8, pixel:6] f32 -> logits [batch:8, digit:3] f32" in repr(loaded)
    np.testing.assert_allclose(found["logits"], wanted, rtol=1e-4, atol=1e-5)
    assert (loaded(image.numpy())["logits"] == found["logits"]).all()  # nothing is drawn
    if not IS_ALONE:
        return
    for mesh, layout in (("", ""), ("data:4", "batch:data"), ("model:2", "hidden:model"), ("a:3,b:2", "digit:a,pixel:b")):
        np.testing.assert_allclose(weft.load(path, mesh, layout)(image)["logits"], wanted, rtol=1e-4, atol=1e-5)
    whole = weft.load(path, "data:2,model:2")  # its own layout, by the axes that are there
    np.testing.assert_allclose(whole(image)["logits"], wanted, rtol=1e-4, atol=1e-5)
    assert any(line.axes == ("data",) for line in whole.program.plan_traffic()), whole.program.plan_traffic()
    np.save(os.path.join(FOLDER, "image.npy"), image.numpy())
    status, said, why = run(path, "--input", f"image={FOLDER}/image.npy", "--output", f"{FOLDER}/out")
    assert status == 0, why
    assert (np.load(f"{FOLDER}/out/logits.npy") == found["logits"]).all()
    os.rename(path, os.path.join(FOLDER, "moved.weft"))
    weft.load(os.path.join(FOLDER, "moved.weft"))
    os.rename(f"{path}.ckpt", f"{path}.gone")
    refused(weft.Error, ["net.weft.ckpt"], lambda: weft.load(os.path.join(FOLDER, "moved.weft")))
    found = weft.load(os.path.join(FOLDER, "moved.weft"), checkpoint=f"{path}.gone")(image)
    np.testing.assert_allclose(found["logits"], wanted, rtol=1e-4, atol=1e-5)
    loaded = weft.load(os.path.join(FOLDER, "moved.weft"), checkpoint=False)
    loaded(image)
    more = weft.Program(weft.Mesh(""), "", loaded.outputs["size"] * 2)  # building goes on
    more.write("image", image.numpy())
    more.run()
    np.testing.assert_allclose(more.read(more.values[0]), 2 * (image.numpy() ** 2).sum(), rtol=1e-5)
    refused(weft.Error, ["same size"], lambda: loaded.outputs["logits"] + loaded.graph.constant(1.0, [("batch", 3)]))
    more.close()
    loaded.close()


def test_a_training_step_is_a_program():
    if not IS_ALONE:
        return "in one process alone"
    g = weft.Graph(3)
    x, w = g.input("x", [("batch", 8), ("pixel", 6)]), g.variable("w", [("pixel", 6)], weft.normal(0.0, 1.0))
    loss = weft.name(weft.mean(weft.square(weft.einsum([("batch", 8)], x, w))), "loss")
    path = os.path.join(FOLDER, "step.weft")
    weft.save(path, [loss, weft.adam(loss, rate=0.1)], mesh="data:2", layout="batch:data")
    loaded, losses = weft.load(path), []
    for _ in range(4):
        losses.append(loaded(np.ones((8, 6))))
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1], losses
    status, said, why = run(path, "--input", "x=1", "--steps", "4", "--output", f"{FOLDER}/step")
    assert status == 0 and np.load(f"{FOLDER}/step/loss.npy").ravel()[-1] == np.float32(losses[-1]), (said, why)


def test_a_function_that_trains_goes_on_where_it_was():
    """Variables, slots and the number of the step, from a function and from jit: losses to the bit those of the net itself."""
    path = os.path.join(FOLDER, "function.weft")
    for is_jit in (False, True):
        weft.session(MESH, LAYOUT, seed=1)
        layer, optimizer = weft.Dense(in_="pixel", out="digit:3", name="layer"), weft.Adam(rate=0.1)
        x, y = weft.tensor(np.ones((8, 4), "f4"), "batch pixel"), weft.tensor(np.arange(8) % 3, "batch", "i32")

        def step(x, y):
            loss = weft.mean(weft.cross_entropy(layer(x), y, "digit"))
            optimizer.step(loss)
            return {"loss": loss}

        step = weft.jit(step) if is_jit else step
        begun = step(x, y)["loss"].item()
        refused(weft.Error, ["frozen=False"], lambda: weft.save(path, step, x, y))
        weft.save(path, step, x, y, frozen=False)
        loaded = weft.load(path)
        refused(weft.Error, ["cannot be written"], lambda: weft.save(f"{FOLDER}/no/x.weft", step, x, y, frozen=False, checkpoint=False))
        losses = [loaded(x, y) for _ in range(4)]
        assert losses == [step(x, y)["loss"].item() for _ in range(4)] and losses[0] != begun, losses


def test_a_net_that_was_never_computed_is_saved_and_threads_take_turns():
    if not IS_ALONE:
        return "in one process alone"
    weft.session(MESH, LAYOUT, seed=2)
    layer, path = weft.Dense(in_="pixel", out="digit:3", name="layer"), os.path.join(FOLDER, "new.weft")
    inputs = [weft.tensor(np.full((8, 4), by, "f4"), "batch pixel") for by in range(4)]
    weft.save(path, lambda x: {"a": {"b": layer(x)}}, inputs[0])
    loaded, right = weft.load(path), []
    assert list(loaded.outputs) == ["a/b"] and loaded.variables() == ["layer/weight", "layer/bias"], loaded
    wanted = [layer(x).numpy() for x in inputs]

    def work(at):
        for _ in range(20):
            right.append((loaded(inputs[at]) == wanted[at]).all())

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 80
    loaded.close()
    refused(weft.Error, ["closed"], lambda: loaded(inputs[0]))


def test_mistakes_are_sentences():
    if not IS_ALONE:
        return "in one process alone"
    session, net, image = trained()
    path, other = os.path.join(FOLDER, "a.weft"), weft.tensor(np.ones((8, 6)), "batch pixel", "f32")
    other.numpy()
    refused(weft.Error, ["neither an argument"], lambda: weft.save(path, lambda x: x + other, image))
    refused(TypeError, ["missing a required argument", "image"], lambda: weft.save(path, net))
    refused(TypeError, ["no argument is a tensor"], lambda: weft.save(path, lambda x: x, 3))
    refused(TypeError, ["too many"], lambda: weft.save(path, net, image, image))
    refused(TypeError, ["gives int"], lambda: weft.save(path, lambda x: 3, image))
    refused(weft.Error, ["argument or a variable itself"], lambda: weft.save(path, lambda x: x, image))
    refused(TypeError, ["no function, module or list"], lambda: weft.save(path, 3))
    weft.save(path, net, image)
    loaded = weft.load(path)
    refused(TypeError, ["no input imgae", "did you mean image"], lambda: loaded(imgae=image))
    refused(TypeError, ["is not given"], lambda: loaded())
    refused(TypeError, ["2 arrays"], lambda: loaded(image, image))
    refused(weft.Error, ["is no saved program"], lambda: weft.load(os.path.abspath(__file__)))


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)
    if IS_ALONE:
        subprocess.run(["rm", "-r", FOLDER], check=True)

"""weft_test.py ROOT: `import weft`: types as C has them, arrays in and out, errors, lifetimes, the example.

LIBWEFT names the library. Exit status 77: numpy is not here."""
import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-numpy)")
    sys.exit(77)

root = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "python"))
import weft


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
    refused(AttributeError, "rellu", lambda: weft.rellu)
    refused(AttributeError, "c.lib.weft_mesh_create", lambda: weft.mesh_create)
    g = weft.Graph()
    n = g.input("n", [rows], "i32")
    program = weft.Program(weft.Mesh(), "", weft.cast(n, "f32"))
    refused(ValueError, r"shape \(3,\)", program.write, n, [1, 2, 3])
    refused(TypeError, "[Cc]ast", program.write, n, [1.5, 2, 3, 4])


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


def test_the_example_trains_and_reads_its_plan():
    environment = {**os.environ, "PYTHONPATH": os.path.join(root, "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    losses = []
    for mesh in (["", ""], ["data:2,model:2", "batch:data,hidden:model"]):
        example = os.path.join(root, "python", "examples", "mlp.py")
        run = subprocess.run([sys.executable, example, *mesh], env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        losses.append([float(found) for found in re.findall(r"loss ([\d.]+)", run.stdout)])
        assert losses[-1][-1] < 0.1 * losses[-1][0], run.stdout
        assert ("all_reduce" in run.stdout) == bool(mesh[0]), run.stdout
    np.testing.assert_allclose(losses[0], losses[1], atol=3e-4)


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

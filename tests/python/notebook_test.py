"""notebook_test.py ROOT: through IPython: a tensor is shown as a picture of its blocks, a traceback ends in the user's line, names are
completed, and a cell that was interrupted leaves the session alive. Exit status 77: IPython is not here."""
import atexit
import os
import shutil
import sys
import tempfile

os.environ["IPYTHONDIR"] = folder = tempfile.mkdtemp()
from start import np, weft  # noqa: F401, before IPython is there

try:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-ipython)")
    sys.exit(77)

atexit.register(shutil.rmtree, folder)
shell = InteractiveShell.instance()
shell.Completer.use_jedi = False
# In a notebook weft is imported when IPython is there already.
weft._frames._install()


def cell(text):
    with capture_output() as said:
        result = shell.run_cell(text)
    return result, said.stdout


def test_a_tensor_is_a_picture_and_numbers():
    result, said = cell("import weft, numpy as np\nweft.session('data:2', 'batch:data')\nx = weft.tensor(np.ones((4, 2), 'f4'), 'batch pixel')\nx")
    assert result.success and "tensor [batch:4, pixel:2] f32 batch:data" in said, said
    data, _ = shell.display_formatter.format(shell.user_ns["x"])
    assert data["text/html"].count("<rect") == 2 and "batch:4" in data["text/html"], data


def test_a_plan_is_a_bar_of_memory_and_tables():
    g = weft.Graph()
    x, w = g.input("x", [("batch", 8), ("pixel", 16)]), g.variable("w", [("pixel", 16), ("digit", 4)], weft.normal(0.0, 0.1))
    loss = weft.mean(weft.einsum([("batch", 8), ("digit", 4)], x, w))
    program = weft.Program(weft.Mesh("data:2"), "batch:data", [loss, weft.adam(loss, rate=0.1)])
    text = shell.display_formatter.format(program)[0]["text/html"]
    assert text.count("<rect") == 4 and "<td>all_reduce</td>" in text and "[batch:8/data, pixel:16]" in text, text
    assert f"variables {program.plan_usage().variable_bytes} B" in text, text


def test_a_traceback_ends_in_the_users_line():
    result, said = cell("def f(x):\n    return x.sum('c')\nf(x)")
    assert isinstance(result.error_in_exec, ValueError) and "there is no dim c" in said, said
    assert "_tensor.py" not in said and "_record.py" not in said, said


def test_names_are_completed():
    for text, wanted in (("weft.soft", "softmax"), ("weft.Ada", "Adam"), ("weft.Batch", "BatchNorm"), ("x.ma", "max")):
        found = shell.complete(text, text, len(text))[1]
        assert any(name.endswith("." + wanted) for name in found), (text, found)


def test_an_interrupted_cell_leaves_the_session():
    result, _ = cell("w = weft.Variable('w', 'batch:4', 0.5)\nw.assign(w * 2)\nraise KeyboardInterrupt")
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    result, said = cell("print(w.tolist())")
    assert said == "[1.0, 1.0, 1.0, 1.0]\n", said


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)

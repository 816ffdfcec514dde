"""loop_test.py ROOT LOOP [MESH LAYOUT]: the loops of docs/python.md, "From PyTorch", as they stand there: Weft's losses are to the bit those
of LOOP, the same in C, and within rounding those of PyTorch, from the same weights. Where no PyTorch is, that part is left out."""
import os
import re
import subprocess
import sys
import tempfile

root, loop, mesh, layout = sys.argv[1], sys.argv[2], *(sys.argv[3:5] or ["", ""])
try:
    import numpy as np
    import torch
except ImportError:
    peer = os.path.join(root, "build-bench", "peers", "bin", "python")  # ./run bench --peers makes it
    if os.path.exists(peer) and not os.environ.get("WEFT_TEST_PEER"):
        os.execve(peer, [peer, *sys.argv], {**os.environ, "WEFT_TEST_PEER": "1"})
    torch = None
from start import np, weft

NEAR = 1e-5  # f32 after 24 steps; 4e-7 was measured

NAMES = {"first/weight": "first.weight", "first/bias": "first.bias", "norm/gain": "norm.weight", "norm/bias": "norm.bias",
         "last/weight": "last.weight", "last/bias": "last.bias"}


def loops():
    """Each in two parts: up to what trains, and that."""
    with open(os.path.join(root, "docs", "python.md"), encoding="utf-8") as file:
        section = file.read().partition("## From PyTorch\n")[2].partition("\n## ")[0]
    theirs, ours = re.findall(r"```python\n(.*?)```", section, re.S)
    return [(text[:text.index("losses = []")], text[text.index("losses = []"):]) for text in (theirs, ours)]


def by_c(images, labels):
    with tempfile.TemporaryDirectory() as folder:
        images.tofile(os.path.join(folder, "images"))
        labels.astype("i4").tofile(os.path.join(folder, "labels"))
        said = subprocess.run([loop, folder, mesh, layout], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        return [float.fromhex(line) for line in said.stdout.split()]


def test_losses_are_those_of_c_and_of_pytorch():
    theirs, ours = loops()
    weft.session(mesh, layout)
    mine, its = {}, {}
    exec(ours[0], mine)
    mine["net"](weft.tensor(mine["images"][:64], "batch pixel")).numpy()
    begun = mine["net"].state_dict()
    assert sorted(begun) == sorted(NAMES), begun.keys()
    exec(ours[1], mine)
    assert mine["losses"] == by_c(mine["images"], mine["labels"])
    if torch is None:
        return "but for PyTorch, which is not here (./run bench --peers installs it)"
    exec(theirs[0], its)
    np.testing.assert_array_equal(its["images"], mine["images"])
    its["net"].load_state_dict({NAMES[name]: torch.from_numpy(array.T.copy()) for name, array in begun.items()})
    exec(theirs[1], its)
    apart = max(abs(a / b - 1) for a, b in zip(mine["losses"], its["losses"], strict=True))
    assert apart < NEAR, apart
    return f"{apart:.1e} from PyTorch's"


print("test_losses_are_those_of_c_and_of_pytorch -", test_losses_are_those_of_c_and_of_pytorch())

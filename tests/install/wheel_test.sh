#!/usr/bin/env bash
# wheel_test.sh CHECKOUT BUILD PYTHON: a wheel of the build, installed by pip in a fresh virtual environment, trains a net there, away from
# the checkout. numpy is PYTHON's own; nothing is fetched.
set -euo pipefail
checkout=$(readlink -f "$1") build=$(readlink -f "$2") python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'FAIL: %s\n' "$*"; exit 1; }
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

"$python" -m venv --system-site-packages "$work/venv" >"$work/log" 2>&1 || skip "no venv here (Debian: python3-venv)"
mkdir "$work/dist"
(cd "$checkout" && WEFT_BUILD=$build PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=python "$python" -c \
    'import sys, wheel_backend; print(wheel_backend.build_wheel(sys.argv[1]))' "$work/dist") >"$work/log" 2>&1 || { cat "$work/log"; die "no wheel"; }
"$work/venv/bin/python3" -m pip install --no-index --no-deps --quiet "$work"/dist/*.whl >"$work/log" 2>&1 || { cat "$work/log"; die "pip install"; }
cat >"$work/train.py" <<'END'
import os
import sys

import numpy as np
import weft

assert weft.__file__.startswith(sys.prefix), weft.__file__
assert any(sys.prefix in line and "libweft.so" in line for line in open("/proc/self/maps")), "the library is not the wheel's"
weft.session("data:2", "batch:data", seed=1)
layer, optimizer = weft.Dense(in_="pixel", out="digit:3", name="layer"), weft.Adam(rate=0.1)
x, y = weft.tensor(np.eye(6, 4, dtype="f4"), "batch pixel"), weft.tensor(np.arange(6) % 3, "batch", "i32")
losses = []
for _ in range(20):
    loss = weft.mean(weft.cross_entropy(layer(x), y, "digit"))
    optimizer.step(loss)
    losses.append(loss.item())
assert losses[-1] < 0.8 * losses[0], losses
weft.save("net.weft", lambda x: layer(x), x)
np.testing.assert_array_equal(weft.load("net.weft")(x), layer(x).numpy())
assert "weft_relu" in weft.relu.__doc__ and os.path.exists(os.path.join(os.path.dirname(weft.__file__), "py.typed"))
print("weft", weft.version(), "of a wheel")
END
cd "$work"
env -u LIBWEFT -u PYTHONPATH "$work/venv/bin/python3" train.py || die "the wheel does not train"

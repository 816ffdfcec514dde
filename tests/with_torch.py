"""with_torch.py: numpy and PyTorch for a test. Where this Python lacks them, the test begins anew by that of `./run bench --peers`,
which installs them; where that is not there either it is skipped, with exit status 77."""
import os
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    peer = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build-bench", "peers", "bin", "python")
    if os.path.exists(peer) and sys.executable != peer and not os.environ.get("WEFT_TEST_PEER"):
        sys.stdout.flush()
        os.execve(peer, [peer, *sys.argv], {**os.environ, "WEFT_TEST_PEER": "1"})
    print(f"skipped: {error}; ./run bench --peers installs PyTorch")
    sys.exit(77)
os.environ.pop("WEFT_TEST_PEER", None)

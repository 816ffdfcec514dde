"""start.py: what a test of Python's begins with: numpy, or it is skipped; the checkout, its first argument; and weft from there."""
import os
import sys

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-numpy)")
    sys.exit(77)

root = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "python"))
import weft

"_frames: tracebacks that end in the user's line; docstrings from the headers' comments."
import os
import re
import sys
import types

from . import _c as c, _headers

PACKAGE = __name__.split(".")[0]
# Packages between the user and what he means: numpy.sum(x) calls x.sum() from a file of numpy's.
NOT_THE_USERS = frozenset([PACKAGE, "numpy", "numpy.core", "numpy._core", "numpy.lib", "numpy.linalg"])


def is_ours(frame):
    return frame.f_globals.get("__package__") == PACKAGE


def is_not_the_users(frame):
    return frame.f_globals.get("__package__") in NOT_THE_USERS


def depth_of_user():
    """For warnings: how many frames up the caller outside these packages is."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back and is_not_the_users(frame):
        frame, depth = frame.f_back, depth + 1
    return depth


def without_ours(trace):
    """A traceback without the frames of these packages, which the user cannot mend."""
    kept = []
    while trace is not None:
        if not is_not_the_users(trace.tb_frame):
            kept.append(trace)
        trace = trace.tb_next
    made = None
    for item in reversed(kept):
        made = types.TracebackType(made, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return made


def _trims(kind, error, trace):
    """Where it was raised in this package, the traceback ends in the user's line; WEFT_TRACEBACK=full shows all."""
    last = trace
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and is_ours(last.tb_frame) and os.environ.get("WEFT_TRACEBACK") != "full":
        return without_ours(trace)
    return trace


def _install():
    before = sys.excepthook

    def hook(kind, error, trace):
        short = _trims(kind, error, trace)
        if short is not trace:
            error.__traceback__, error.__context__ = short, None
        before(kind, error, short)

    sys.excepthook = hook
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell:
        def show(shell, kind, error, trace, tb_offset=None):
            shell.showtraceback((kind, error, _trims(kind, error, trace)), tb_offset=tb_offset)

        shell.set_custom_exc((Exception,), show)


_install()


# ---- what the headers say ---------------------------------------------------------------------------------------------------

_texts = {}


def _text_of(header):
    if header not in _texts:
        _texts[header] = ""
        for folder in _headers.find(c._root):
            path = os.path.join(folder, header)
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    _texts[header] = file.read()
    return _texts[header]


def comment_of(name):
    """The comment that stands above weft_NAME in its header, or behind it on its line, and that of its options."""
    function = c.functions["weft_" + name]
    said = [_comment(_text_of(function["header"]), f"weft_{name}")]
    for parameter in function["parameters"]:
        kind = parameter["type"].replace("const", "").strip(" *")
        if kind.endswith("_options") and c.model["structs"].get(kind, {}).get("fields"):
            fields = ", ".join(field["name"] for field in c.model["structs"][kind]["fields"])
            said.append(f"Options: {fields}")
    return "\n\n".join(filter(None, said))


def _comment(text, name):
    at = re.search(rf"^WEFT_API[^;{{]*?\b{name}\(", text, re.M)
    if at is None:
        return ""
    line_end = text.find("\n", text.find(";", at.end()))
    behind = re.search(r"/\*(.*?)\*/\s*$", text[text.find(";", at.end()):line_end])
    before = text[:at.start()].rstrip()
    while not before.endswith("*/") and before.endswith(";") and before.rfind("\n") > 0:  # one comment for several in a row
        before = before[:before.rfind("\n")].rstrip()
    above = re.search(r"/\*((?:(?!\*/).)*)\*/$", before, re.S)
    lines = (above.group(1) if above else "").splitlines()
    said = "\n".join(re.sub(r"^ ?\*? ?", "", line).rstrip() if i else line.strip() for i, line in enumerate(lines)).strip()
    return "\n".join(filter(None, (said, behind.group(1).strip() if behind else "")))

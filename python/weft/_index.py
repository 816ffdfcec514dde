"""_index: what the headers declare, each declaration read when somebody asks for it: nearly all the time of reading them goes into what
no program uses.

    model = index(find("/usr"))                     # of _headers
    model["functions"]["weft_version"]              # as _headers.read has it; functions by their names
    model["constants"], model["structs"], model["enums"], model["callbacks"], model["typedefs"]
"""
import os
import re
import threading

from ._headers import INLINE, Reader

_reading = threading.RLock()
os.register_at_fork(after_in_child=_reading._at_fork_reinit)  # the thread that had it is not there


class Unread(dict):
    """What is declared by name; `unread` has the declarations of what nobody asked for yet. What is there is whole: other threads see it."""

    def __init__(self):
        super().__init__()
        self.unread = {}

    def __missing__(self, name):
        with _reading:
            for declaration in self.unread.get(name, ()):
                declaration.read()
            if not dict.__contains__(self, name):
                raise KeyError(name)
            self.unread.pop(name, None)
            return self[name]

    def __contains__(self, name):
        return dict.__contains__(self, name) or name in self.unread

    def get(self, name, otherwise=None):
        try:
            return self[name]
        except KeyError:
            return otherwise

    def append(self, function):
        self[function["name"]] = function

    def names(self):
        """All names, none of which is read for it."""
        with _reading:
            return [*dict.keys(self), *(name for name in self.unread if not dict.__contains__(self, name))]

    def _all(self):
        for name in self.names():
            self[name]
        return self

    def __iter__(self):
        return dict.__iter__(self._all())

    def __len__(self):
        return dict.__len__(self._all())

    def keys(self):
        return dict.keys(self._all())

    def values(self):
        return dict.values(self._all())

    def items(self):
        return dict.items(self._all())


# What a declaration begins with, and the kind and the name that it declares: of structs, enums and callbacks behind typedef too.
_NAMED = re.compile(r"""WEFT_API\s+(?!extern\b)[^(]*?(?P<functions>\w+)\s*\(
                       |typedef\s[^({;]*\(\*(?P<callbacks>\w+)\)
                       |(?:typedef\s+)?struct\s+(?P<structs>\w+)\s*[{\w]
                       |(?P<enum>(?:typedef\s+)?enum\b)\s*(?P<enums>\w+)?\s*\{
                       |typedef\s[^({;]*?(?P<typedefs>\w+)\s*;""", re.X)  # fmt: skip
_KINDS = ("functions", "callbacks", "structs", "enums", "typedefs")


def _put_off(declaration):
    """It is read when its name is asked for; an enum by the names of its numbers too. What has no such name is read now."""
    model, text = declaration.reader.model, declaration.rows[0][1]
    if text.startswith(INLINE):
        return
    if not text.startswith("WEFT_API") or "(" not in text:
        text = " ".join([row for _, row in declaration.rows])
    found = _NAMED.match(text)
    if found is None:
        declaration.read()
        return
    if found.lastgroup in _KINDS:
        those = model[found.lastgroup].unread.setdefault(found.group(found.lastgroup), [])
        those.insert(0 if "{" in text else len(those), declaration)  # a struct's fields, before that there is such a struct
    if found.group("enum"):
        for name in re.findall(r"[A-Za-z_]\w*", text[found.end():text.rindex("}")]):
            model["constants"].unread.setdefault(name, []).append(declaration)


def index(folders):
    model = {kind: Unread() for kind in (*_KINDS, "constants")}
    model["variables"] = []
    Reader(folders, model, _put_off).read_all()
    return model

"""_headers: what Weft's public headers declare, as data.

    model = read(find("/usr"))              # or find("."), a source tree
    model["functions"][0]                   # {"name": "weft_version", "returns": "const char *", "parameters": [], ...}

    python3 _headers.py [ROOT]              # what read() gives, as JSON

The headers are written in a small part of C, and this reads no more than that part: a declaration that it does not
understand is a HeaderError with file and line, never a guess. Nothing but Python itself is needed.

    functions   [{name, header, line, returns, must_check, variadic, parameters: [field]}]; WEFT_API only
    variables   [field + header, line]; WEFT_API extern
    callbacks   {name: {header, returns, parameters: [field]}}: typedefs of function pointers
    structs     {name: {header, fields: [field]}}, or fields None: opaque
    enums       {name: {header, entries: {NAME: number}}}; those without a name are only in constants
    typedefs    {name: type}: other names of types
    constants   {NAME: number}: of enums, and macros that are one number
    inlines     [name]: static inline functions, which no library has

A field is {name, type}: the type as text, spaced like "const weft_dim *". An array has "length" too, a list with a number
or None for each pair of brackets; a pointer to a function has type "callback", "returns" and "parameters".
"""
import os
import re
import sys

BASIC = {
    "void", "bool", "char", "float", "double", "size_t", "ptrdiff_t", "FILE", "va_list",
    "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uintptr_t", "intptr_t",
}  # fmt: skip
WORDS = {"signed", "unsigned", "short", "int", "long", "char"}  # of which C makes its integers
DEFINED = {"__GNUC__", "WEFT_NO_HERE"}  # the macros that record a caller's place are nobody's business here
UNDEFINED = {"__CUDACC__", "__cplusplus", "__clang__", "__x86_64__"}

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f]+)|(?P<line>\n)|(?P<name>[A-Za-z_]\w*)|(?P<number>(?:0[xX][0-9a-fA-F]+|\d[\w.]*))
        |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<mark>\.\.\.|<<|>>|[-+*/|&~^%(){}\[\];,=:<>!?.\#])""",
    re.X,
)


class HeaderError(Exception):
    """A header says what this reader does not understand."""


def find(root):
    """The folders of public headers under a prefix, or in a source tree; a folder that holds weft.h is itself one."""
    if os.path.isfile(os.path.join(root, "weft.h")):
        return [root]
    include = os.path.join(root, "include")
    if not os.path.isfile(os.path.join(include, "weft.h")):
        raise HeaderError(f"{root}: no include/weft.h there; name a prefix where Weft is installed, or a source tree")
    rooms = (os.path.join(root, room, "include") for room in sorted(os.listdir(root)))
    return [include] + [room for room in rooms if os.path.isdir(os.path.join(room, "weft"))]


def read(folders):
    """The model (see above) of every header in these folders."""
    model = {
        "functions": [], "variables": [], "callbacks": {}, "structs": {}, "enums": {}, "typedefs": {}, "constants": {}, "inlines": [],
    }  # fmt: skip
    Reader(folders, model, Declaration.read).read_all()
    return model


class Declaration:
    """One declaration, or what stands between two of them: rows of a header, (line, text)."""

    __slots__ = ("reader", "header", "rows", "is_read")

    def __init__(self, reader, header, rows):
        self.reader, self.header, self.rows, self.is_read = reader, header, rows, False

    def read(self):
        if self.is_read:  # now, by what asks for a name that stands in it
            return
        self.is_read, tokens = True, []
        try:
            for line, row in self.rows:
                tokens += Reader.tokens(f"{self.header}:{line}", row, line)
            _Declarations(self.reader, self.header, tokens).read_all()
        finally:
            self.is_read = False


INLINE = ("static", "WEFT_INLINE", "WEFT_HOST_DEVICE")  # how functions begin that no library has


class Reader:
    """All headers, each once, those it includes before it. take: what is done with a declaration."""

    def __init__(self, folders, model, take):
        self.paths = {}
        for folder in folders:
            for at, inner, names in os.walk(folder):
                inside = os.path.relpath(at, folder)
                if inside == ".":
                    inner[:] = [name for name in inner if name == "weft"]  # an installed prefix is shared with others
                for name in names:
                    if name.endswith(".h") and (inside != "." or name == "weft.h"):
                        path = os.path.join(at, name)
                        self.paths[os.path.normpath(os.path.join(inside, name)).replace(os.sep, "/")] = path
        self.seen = set()
        self.macros = {}  # name: a number, or None for any other text
        self.model, self.take = model, take

    def read_all(self):
        for header in sorted(self.paths):
            self.include(header)

    def include(self, header):
        if header in self.seen:
            return
        self.seen.add(header)
        with open(self.paths[header], encoding="utf-8") as file:
            text = file.read()
        for rows in self.declarations(self.preprocess(header, text)):
            self.take(Declaration(self, header, rows))

    def preprocess(self, header, text):
        """Rows (line, text) without comments and directives; what is included is read on the way."""
        text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: " " + "\n" * found.group().count("\n"), text, flags=re.S)
        text = text.replace("\\\n", "\0")  # a continued line counts once more below
        rows, taken, line = [], [], 0
        for row in text.split("\n"):
            line += 1
            row = row.strip()
            if not row:
                continue
            continued = 0
            if "\0" in row:
                continued, row = row.count("\0"), row.replace("\0", " ")
            if row[0] == "#":
                self.directive(f"{header}:{line}", row[1:].strip(), taken)
            elif all(taken):
                rows.append((line, row))
            line += continued
        if taken:
            raise HeaderError(f"{header}: an #if without its #endif")
        return rows

    @staticmethod
    def declarations(rows):
        """Rows of one declaration each: to the semicolon, or of a function that is inline to the brace, where no brace is open."""
        one, depth = [], 0
        for at in rows:
            row = at[1]
            if not one and row in ("WEFT_BEGIN", "WEFT_END"):
                continue
            one.append(at)
            if "{" in row or "}" in row:
                depth += row.count("{") - row.count("}")
            if depth == 0 and (row[-1] == ";" or row[-1] == "}" and one[0][1].startswith(INLINE)):
                yield one
                one = []
        if one:
            yield one

    @staticmethod
    def tokens(where, row, line):
        at, found = 0, []
        while at < len(row):
            token = TOKEN.match(row, at)
            if token is None:
                raise HeaderError(f"{where}: what is {row[at:at + 20]!r}?")
            at = token.end()
            if token.lastgroup != "space":
                found.append((token.lastgroup, token.group(), line))
        return found

    def directive(self, where, text, taken):
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word in ("ifdef", "ifndef"):
            taken.append(self.is_defined(where, rest) == (word == "ifdef"))
        elif word == "else" and taken:
            taken[-1] = not taken[-1]
        elif word == "endif" and taken:
            taken.pop()
        elif not all(taken):
            if word == "if":
                taken.append(False)
        elif word == "include":
            name = re.fullmatch(r'[<"](.+)[>"]', rest)
            if name is None:
                raise HeaderError(f"{where}: #include {rest}")
            if name.group(1) in self.paths:
                self.include(name.group(1))
            elif name.group(1).startswith("weft"):
                raise HeaderError(f"{where}: {name.group(1)} is not among the public headers")
        elif word == "define":
            self.define(where, rest)
        else:
            raise HeaderError(f"{where}: #{text}: this reader knows #ifdef, #ifndef, #else, #endif, #include, #define")

    def is_defined(self, where, name):
        if name in DEFINED or name in UNDEFINED:
            return name in DEFINED
        if not name.startswith("WEFT_"):
            raise HeaderError(f"{where}: whether {name} is defined is not known here")
        return name in self.macros

    def define(self, where, text):
        name, call, value = re.fullmatch(r"(\w+)(\([^)]*\))?\s*(.*)", text).groups()
        self.macros[name] = None
        if call is None and re.match(r"[-(]*\d", value):
            try:
                number = int(value, 0)
            except ValueError:
                number = float(value) if re.fullmatch(r"-?[\d.]+(e-?\d+)?", value) else None
            if number is None:
                tokens = self.tokens(where, value, 0) + [("end", "", 0)]
                number = _Declarations(self, where, tokens).number_to_end()
            self.macros[name] = self.model["constants"][name] = number


class _Declarations:
    """The declarations of one header, by recursive descent."""

    def __init__(self, reader, header, tokens):
        self.model, self.header, self.reader = reader.model, header, reader
        self.tokens, self.at = tokens, 0
        self.within = None  # the struct whose fields are read: a callback of a table may be handed the table

    # ---- tokens

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def take(self, wanted=None):
        if self.at >= len(self.tokens) or (wanted is not None and self.peek() != wanted):
            self.fail(f"{wanted or 'more'} is wanted")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, text):
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def take_name(self):
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            self.fail("a name is wanted")
        return self.take()

    def line(self):
        return self.tokens[min(self.at, len(self.tokens) - 1)][2]

    def fail(self, why):
        near = " ".join(token[1] for token in self.tokens[max(0, self.at - 6) : self.at + 4])
        raise HeaderError(f"{self.header}:{self.line()}: {why}, near: {near}")

    def skip_pair(self, opening, closing):
        self.take(opening)
        depth = 1
        while depth:
            word = self.take()
            depth += (word == opening) - (word == closing)

    # ---- declarations

    def read_all(self):
        while self.at < len(self.tokens):
            word = self.peek()
            if word in ("WEFT_BEGIN", "WEFT_END", ";"):
                self.take()
            elif word == "typedef":
                self.typedef()
            elif word in ("enum", "struct") and "{" in (self.peek(1), self.peek(2)):
                self.enum() if word == "enum" else self.struct()
                self.take(";")
            elif word in ("static", "WEFT_INLINE", "WEFT_HOST_DEVICE"):
                self.inline()
            elif word == "WEFT_API":
                self.exported()
            else:
                self.fail("a declaration that this reader does not know")

    def typedef(self):
        self.take("typedef")
        word = self.peek()
        if word in ("enum", "struct") and "{" in (self.peek(1), self.peek(2)):
            tag = self.enum() if word == "enum" else self.struct()
            if self.take_name() != tag:
                self.fail("a type's name is its tag's name")
        elif word == "struct":
            self.take()
            tag = self.take_name()
            if self.take_name() != tag:
                self.fail("a type's name is its tag's name")
            self.model["structs"].setdefault(tag, {"header": self.header, "fields": None})
        else:
            field = self.field()
            if field["type"] == "callback":
                self.model["callbacks"][field.pop("name")] = {"header": self.header, **field}
            elif "length" in field:
                self.fail("a name for an array")
            else:
                self.model["typedefs"][field["name"]] = field["type"]
        self.take(";")

    def enum(self):
        self.take("enum")
        name = None if self.peek() == "{" else self.take_name()
        self.take("{")
        entries, number = {}, -1
        while not self.accept("}"):
            entry = self.take_name()
            number = self.number() if self.accept("=") else number + 1
            entries[entry] = self.model["constants"][entry] = number
            if not self.accept(",") and self.peek() != "}":
                self.fail("a comma between the entries is wanted")
        if name is not None:
            self.model["enums"][name] = {"header": self.header, "entries": entries}
        return name

    def struct(self):
        self.take("struct")
        name = self.take_name()
        self.within = name
        self.take("{")
        fields = []
        while not self.accept("}"):
            base = self.base_type()
            fields.append(self.declarator(base))
            while self.accept(","):
                fields.append(self.declarator(base))
            self.take(";")
        self.model["structs"][name] = {"header": self.header, "fields": fields}
        return name

    def inline(self):
        if not (self.accept("WEFT_INLINE") or self.accept("WEFT_HOST_DEVICE")):  # weft/extend/math.h, half.h
            self.take("static")
            self.take("inline")
        field = self.declarator(self.base_type())
        self.parameters()
        self.skip_pair("{", "}")
        self.model["inlines"].append(field["name"])

    def exported(self):
        line = self.line()
        self.take("WEFT_API")
        must_check = self.accept("WEFT_MUST_CHECK")
        place = {"header": self.header, "line": line}
        if self.accept("extern"):
            self.model["variables"].append({**self.field(), **place})
        else:
            field = self.field()
            parameters, variadic = self.parameters()
            if self.accept("WEFT_FORMAT"):
                self.skip_pair("(", ")")
            self.model["functions"].append({
                "name": field["name"], "returns": field["type"], "must_check": must_check, "variadic": variadic,
                "parameters": parameters, **place,
            })  # fmt: skip
        self.take(";")

    # ---- types

    def field(self):
        return self.declarator(self.base_type())

    def base_type(self):
        const = self.accept("const")
        if self.peek() in ("struct", "enum"):
            self.take()
        words = [self.take_name()]
        if words[0] in WORDS:
            while self.peek() in WORDS:
                words.append(self.take())
        name = " ".join(words)
        known = (BASIC, self.model["structs"], self.model["enums"], self.model["typedefs"], self.model["callbacks"])
        if words[0] not in WORDS and name != self.within and not any(name in names for names in known):
            self.fail(f"{name} is no type that was declared")
        const = self.accept("const") or const
        return f"const {name}" if const else name

    def declarator(self, base):
        """One name with its stars, brackets or, in brackets, a pointer to a function."""
        stars = ""
        while self.accept("*"):
            stars += "*"
            if self.accept("const"):
                stars += "const "
        text = f"{base} {stars}".strip() if stars else base
        if self.peek() == "(" and self.peek(1) == "*":
            self.take("("), self.take("*")
            const = self.accept("const")
            name = self.take_name()
            self.take(")")
            parameters, variadic = self.parameters()
            if variadic or const:
                self.fail("a pointer to a function of this kind")
            return {"name": name, "type": "callback", "returns": text, "parameters": parameters}
        name = self.take_name() if self.at < len(self.tokens) and self.tokens[self.at][0] == "name" else ""
        field = {"name": name, "type": text}
        while self.accept("["):
            field.setdefault("length", []).append(None if self.peek() == "]" else self.number())
            self.take("]")
        return field

    def parameters(self):
        self.take("(")
        parameters = []
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        while not self.accept(")"):
            if self.accept("..."):
                self.take(")")
                return parameters, True
            parameters.append(self.field())
            if not self.accept(",") and self.peek() != ")":
                self.fail("a comma between the parameters is wanted")
        return parameters, False

    # ---- numbers

    ORDER = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6}
    DOES = {
        "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "<<": lambda a, b: a << b,
        ">>": lambda a, b: a >> b, "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
        "/": lambda a, b: int(a / b),
    }  # fmt: skip

    def number(self, least=1):
        left = self.operand()
        while self.ORDER.get(self.peek(), 0) >= least:
            mark = self.take()
            left = self.DOES[mark](left, self.number(self.ORDER[mark] + 1))
        return left

    def number_to_end(self):
        number = self.number()
        if self.tokens[self.at][0] != "end":
            self.fail("a number is wanted")
        return number

    def operand(self):
        if self.accept("("):
            number = self.number()
            self.take(")")
            return number
        if self.accept("-"):
            return -self.operand()
        if self.accept("~"):
            return ~self.operand()
        word = self.take()
        number = self.model["constants"].get(word)
        if number is not None:
            return number
        if not re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*", word):
            self.fail(f"{word} is no number that was declared")
        digits = word.rstrip("uUlL")
        return int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)


if __name__ == "__main__":
    import json

    try:
        json.dump(read(find(sys.argv[1] if len(sys.argv) > 1 else ".")), sys.stdout, indent=1)
        print()
    except HeaderError as error:
        sys.exit(f"_headers: {error}")

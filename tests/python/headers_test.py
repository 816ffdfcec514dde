"""headers_test.py ROOT LIBRARY: python/weft/_headers.py finds all that libweft exports, and refuses what it cannot read; _index.py reads
the same, when it is asked for.

Nothing but Python and nm is needed."""
import os
import subprocess
import sys
import tempfile
import types

root, library = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.modules["weft"] = types.ModuleType("weft")  # without what opens the library
sys.modules["weft"].__path__ = [os.path.join(root, "python", "weft")]
from weft import _headers, _index


def test_every_exported_name_is_declared():
    model = _headers.read(_headers.find(root))
    declared = {entry["name"] for entry in model["functions"] + model["variables"]}
    rows = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {row.split()[2] for row in rows.splitlines() if row.split()[2].startswith("weft_")}
    assert exported - declared == set(), f"exported, in no public header: {exported - declared}"
    assert declared - exported == set(), f"declared, not exported: {declared - exported}"
    return f"{len(exported)} exported names"


def by_name(model):
    """All of an index, read."""
    return {kind: dict(model[kind].items()) for kind in ("functions", "callbacks", "structs", "enums", "typedefs", "constants")}


def test_what_is_read_later_is_the_same():
    model, asked = _headers.read(_headers.find(root)), _index.index(_headers.find(root))
    assert sorted(asked["functions"].names()) == sorted(f["name"] for f in model["functions"])
    assert not dict.keys(asked["functions"]), "a function was read, and nobody has asked for one"
    assert asked["structs"]["weft_error"] == model["structs"]["weft_error"]
    assert "weft_relu" in asked["functions"] and asked["functions"].get("weft_no") is None and "weft_no" not in asked["structs"]
    wanted = {**model, "functions": {function["name"]: function for function in model["functions"]}}
    for kind, found in by_name(asked).items():
        assert found == wanted[kind], kind


def test_threads_ask_at_once():
    from concurrent.futures import ThreadPoolExecutor

    asked, wanted = _index.index(_headers.find(root)), _headers.read(_headers.find(root))["structs"]
    with ThreadPoolExecutor(8) as pool:
        for name, found in pool.map(lambda name: (name, asked["structs"][name]), [name for name in wanted for _ in range(4)]):
            assert found == wanted[name], name


def read_text(text, read=_headers.read):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "weft"))
        with open(os.path.join(folder, "weft.h"), "w") as file:
            file.write('#include "weft/x.h"\n')
        with open(os.path.join(folder, "weft", "x.h"), "w") as file:
            file.write(text)
        return read([folder])


def test_what_is_written_is_what_is_read():
    model = read_text(
        """/* a comment with int f(void); in it */
        #define WEFT_LONG(a) \\
            f(a)
        #define WEFT_SIZE (1 << 4)
        #ifdef __cplusplus
        #include <initializer_list>
        class nothing {};
        #else
        enum { WEFT_A = 2 * WEFT_SIZE + 1, WEFT_B };
        #endif
        typedef struct weft_s weft_s;
        typedef void (*weft_body)(void *argument, int64_t i);
        typedef struct weft_t {
            const char *name, *other;
            long long a[WEFT_B][3]; // one more
            int (*f)(const weft_s *const *s, unsigned int n);
        } weft_t;
        WEFT_API WEFT_MUST_CHECK int weft_f(weft_body body, const weft_t (*g)(void), int8_t x[],
            const char *format, ...) WEFT_FORMAT(4, 5);
        static inline int weft_g(int x) { if (x) { return 1; } return 0; }
        WEFT_API extern const weft_t *const weft_v[WEFT_A];
        """
    )
    assert model["constants"] == {"WEFT_SIZE": 16, "WEFT_A": 33, "WEFT_B": 34}, model["constants"]
    fields = model["structs"]["weft_t"]["fields"]
    assert [field["type"] for field in fields] == ["const char *", "const char *", "long long", "callback"]
    assert fields[2]["length"] == [34, 3]
    assert fields[3]["parameters"][0] == {"name": "s", "type": "const weft_s *const *"}
    assert model["structs"]["weft_s"]["fields"] is None and model["inlines"] == ["weft_g"]
    f = model["functions"][0]
    assert f["must_check"] and f["variadic"] and f["line"] == 18, f
    assert [p["type"] for p in f["parameters"]] == ["weft_body", "callback", "int8_t", "const char *"]
    assert f["parameters"][1]["returns"] == "const weft_t" and f["parameters"][2]["length"] == [None]
    assert model["variables"][0]["type"] == "const weft_t *const"


def test_what_is_not_understood_is_refused_with_its_place():
    for text in [
        "int weft_f(void);",  # no WEFT_API
        "WEFT_API int weft_f(weft_unknown *x);",
        "WEFT_API int weft_f(int x)",
        "WEFT_API int weft_f(int x) __attribute__((pure));",
        "union weft_u { int a; };",
        "typedef struct weft_s { int a : 3; } weft_s;",
        "typedef struct { int a; } weft_s;",
        "enum { WEFT_A = sizeof(int) };",
        "#if WEFT_A > 2\n#endif",
        "#ifdef _WIN32\n#endif",
        "#ifdef WEFT_A\n",
        "#include <weft/none.h>",
        "WEFT_API @ int weft_f(void);",
        "WEFT_API int (*weft_f(void))(int);",
        "WEFT_API int weft_f(int x, y);",
        "#define WEFT_N 3 apples",
    ]:
        for read in (_headers.read, lambda folders: by_name(_index.index(folders))):
            try:
                model = read_text("\n" + text, read)
            except _headers.HeaderError as error:
                assert "weft/x.h:" in str(error), error
            else:
                raise AssertionError(f"read without a word: {text}: {model}")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok")

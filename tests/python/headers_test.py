"""headers_test.py ROOT LIBRARY: python/weft/_headers.py finds all that libweft exports, and refuses what it cannot read.

Nothing but Python and nm is needed."""
import os
import subprocess
import sys
import tempfile

root, library = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "python", "weft"))
import _headers


def test_every_exported_name_is_declared():
    model = _headers.read(_headers.find(root))
    declared = {entry["name"] for entry in model["functions"] + model["variables"]}
    rows = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {row.split()[2] for row in rows.splitlines() if row.split()[2].startswith("weft_")}
    assert exported - declared == set(), f"exported, in no public header: {exported - declared}"
    assert declared - exported == set(), f"declared, not exported: {declared - exported}"
    return f"{len(exported)} exported names"


def read_text(text):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "weft"))
        with open(os.path.join(folder, "weft.h"), "w") as file:
            file.write('#include "weft/x.h"\n')
        with open(os.path.join(folder, "weft", "x.h"), "w") as file:
            file.write(text)
        return _headers.read([folder])


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
        try:
            model = read_text("\n" + text)
        except _headers.HeaderError as error:
            assert "weft/x.h:" in str(error), error
        else:
            raise AssertionError(f"read without a word: {text}: {model}")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok")

"""numbers_test.py ROOT: Python's numbers as the library's: all that fits comes out as it went in, and what does not is refused by
a sentence, wherever it goes in; numbers beside values; operators as ops.

LIBWEFT names the library. Exit status 77: numpy is not here."""
import itertools
import operator
import os
import random
import re
import sys

from start import np, weft

ROW = weft.Dim("row", 5)
INTEGERS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u8": (0, 255)}
LARGEST = {"f16": 65504.0, "bf16": float(2**128 - 2**120), "f32": float(2**128 - 2**104), "f64": sys.float_info.max}
REFUSALS = (TypeError, ValueError, weft.Error)


def cases(n):
    return max(1, int(n * float(os.environ.get("TEST_CASES", "100")) / 100))


def refused(kind, pattern, call, *given, **options):
    try:
        made = call(*given, **options)
    except kind as error:
        assert re.search(pattern, str(error)), error
        return error
    raise AssertionError(f"not refused: {pattern}; it gave {made!r}")


def program_of(dtype, n=2, mesh="data:2"):
    g = weft.Graph()
    x = g.input("x", [("row", n)], dtype)
    return weft.Program(weft.Mesh(mesh), "row:data", weft.add(x, x)), x


def fits(number, dtype):
    """By Python's own arithmetic: whether an array of the dtype can be said to have this number."""
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return number == number and abs(number) != float("inf") and low <= number <= high and number == int(number)
    step = 2.0 ** {"f16": 5, "bf16": 120, "f32": 104, "f64": 971}[dtype]
    return number != number or abs(number) == float("inf") or abs(number) < int(LARGEST[dtype]) + int(step) // 2


def is_same(made, number):
    is_whole = np.isfinite(made) and made == np.trunc(made) and number == number and abs(number) != float("inf")
    return int(made) == number if is_whole else bool(made == number)


EDGES = [0, 1, -1, 2.5, -0.5, 1e-300, float("nan"), float("inf"), -float("inf"), 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1,
         2**32 + 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 + 3, 65504, 65519, 65520.0, 65535, 70000, 1e5, 3.3895e38,
         3.3999e38, 3.4028235e38, 3.4028236e38, 1e39, 1e300, 10**400]  # fmt: skip


def test_what_fits_comes_out_and_what_does_not_is_refused():
    tried = 0
    for dtype in weft.DTYPES:
        program, x = program_of(dtype)
        for number in EDGES:
            forms = [[0, number]]
            for kind in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "longdouble", ">i8"):
                with np.errstate(all="ignore"):
                    try:
                        array = np.array([0, number]).astype(kind) if abs(number) < 2**64 or "f" in kind else None
                    except (OverflowError, TypeError):
                        continue
                if array is not None and is_same(array[1], number):
                    forms.append(array)
            for form in forms:
                tried += 1
                if fits(number, dtype):
                    program.write(x, form)
                    found = program.read(x)[1]
                    wanted = number if dtype in INTEGERS else float(number)
                    within = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}.get(dtype, 0)
                    np.testing.assert_allclose(found, wanted, rtol=within, atol=1e-7 if within else 0)
                    assert dtype not in INTEGERS or int(found) == number
                else:
                    said = str(refused(ValueError, r"write: x is .*element \[1\] is", program.write, x, form))
                    assert dtype in said, said
    program, x = program_of("i64")
    program.write(x, [2**53 + 1, 0.0])  # which numpy would make floats of
    assert program.read(x).tolist() == [2**53 + 1, 0]
    refused(ValueError, "nan, which no integer is", program.write, x, [0.0, float("nan")])
    return f"{tried} writes"


def test_random_numbers_fit_or_do_not():
    dice = random.Random(1)
    for _ in range(cases(300)):
        dtype, kind = dice.choice(list(weft.DTYPES)), dice.choice(["int64", "uint64", "float64", "float32"])
        program, x = program_of(dtype, 6, "")
        if kind == "uint64":
            array = np.array([dice.getrandbits(dice.randint(1, 64)) for _ in range(6)], kind)
        elif kind == "int64":
            array = np.array([dice.getrandbits(dice.randint(1, 63)) * dice.choice([-1, 1]) for _ in range(6)], kind)
        else:
            array = np.array([dice.gauss(0, 1) * 2.0 ** dice.randint(0, 100) for _ in range(6)], kind)
            array = np.trunc(array) if dice.random() < 0.5 else array
        bad = [i for i in range(6) if not fits(array[i].item(), dtype)]
        if bad:
            refused(ValueError, rf"element \[{bad[0]}\]|past|fraction|infinite", program.write, x, array)
            continue
        program.write(x, array)
        found = program.read(x)
        assert dtype not in INTEGERS or [int(each) for each in found] == [int(each) for each in array], (array, found)


def test_bf16_is_rounded_once():
    program, x = program_of("bf16", 4, "")
    tie = 1 + 2.0**-8  # between two bf16, the lower of which is even
    program.write(x, np.array([tie, tie + 2.0**-40, tie - 2.0**-40, -tie - 2.0**-40]))
    assert program.read(x).tolist() == [1, 1 + 2.0**-7, 1, -1 - 2.0**-7]


def test_what_is_no_number_is_refused():
    for dtype in weft.DTYPES:
        program, x = program_of(dtype)
        for given, sentence in (
            ([1j, 1], "complex"), (["1", "2"], "a text"), ([b"1", b"2"], "bytes"), ([None, 1], r"element \[0\] is None"),
            (np.array([1, object()], object), r"element \[1\]"), (np.array(["2020-01-01"] * 2, "M8[D]"), "a date"),
            (np.zeros(2, [("a", "i4")]), "a record"), ([x, 1], "is a value of a program, and no array"),
        ):  # fmt: skip
            refused(TypeError, sentence, program.write, x, given)
        for given, sentence in (
            (np.ma.array([1, 2], mask=[False, True]), r"element \[1\] is masked"), (np.ma.masked_all(2), "masked"),
            ([1, np.ma.masked], "masked"), ([np.ma.masked, 1], "masked"), ([1, [2, 3]], "different lengths"), (3, r"shape \(\)"),
            ([[1, 2]], r"shape \(1, 2\)"), ([1, 2, 3], r"shape \(3,\)"),
        ):  # fmt: skip
            refused(ValueError, sentence, program.write, x, given)
        program.write(x, np.ma.array([1, 2]))  # of which no element is masked
        program.write(x, [True, np.float32(2)])
        assert program.read(x).tolist() == [1, 2]
    g = weft.Graph()
    two = g.input("two", [("a", 2), ("b", 2)], "i32")
    program = weft.Program(weft.Mesh(), "", weft.add(two, two))
    refused(ValueError, r"element \[1, 0\] is 4294967297", program.write, two, [[1, 2], [2**32 + 1, 3]])
    refused(ValueError, r"element \[0, 1\] is masked", program.write, two, np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]))
    refused(ValueError, "is masked", program.write, two, [np.ma.array([1, 2], mask=[0, 1]), [3, 4]])


OPERATORS = "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split()


def wanted_of(act, array, number, swapped):
    """By numpy in wide numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(act(number, array) if swapped else act(array, number))


def test_numbers_beside_values_are_as_in_numpy_or_refused():
    numbers = [1, 2, -1, 300, 2**31, 2.0, 2.5, -0.5, float("nan"), float("inf"), True, np.float32(2.5), np.float64(0.5), np.int64(3),
               np.uint8(3), np.bool_(True), np.array(2.5), np.array(2), 1e300, 2**64, 10**400]  # fmt: skip
    for dtype in ("i32", "i64", "f32", "f64", "f16"):
        array = np.arange(-2, 3) if dtype != "f16" else np.arange(1, 6)
        g, found = weft.Graph(), []
        x = g.input("x", [ROW], dtype)
        for name, number, swapped in itertools.product(OPERATORS, numbers, (False, True)):
            act = getattr(operator, name)
            plain = number.item() if hasattr(number, "item") else number
            if name in ("floordiv", "mod") and (swapped or plain == float("inf")) or name == "pow" and (swapped or dtype == "f16"):
                continue  # by zeros, and what has no number
            try:
                made = act(number, x) if swapped else act(x, number)
            except REFUSALS as error:
                is_whole_quotient = dtype in INTEGERS and (name in ("truediv", "pow"))
                assert is_whole_quotient or not fits(plain, dtype), (dtype, name, number, error)
                assert dtype in str(error), error
                continue
            assert isinstance(made, weft.Value) and (dtype not in INTEGERS or fits(plain, dtype)), (dtype, name, number)
            wide = array.astype("float64" if dtype not in INTEGERS else object)
            plain = plain if dtype in INTEGERS else float(plain)
            found.append((made, wanted_of(act, wide, plain, swapped), (name, number, swapped)))
        program = weft.Program(weft.Mesh("data:2"), "row:data", [made for made, *_ in found])
        program.write(x, array)
        program.run()
        for made, wanted, what in found:
            read = program.read(made)
            if made.dtype in INTEGERS:
                low, high = INTEGERS[made.dtype]
                wrapped = [(int(each) - low) % (high - low + 1) + low for each in wanted]
                assert read.tolist() == wrapped, (dtype, what, read, wanted)
            else:
                with np.errstate(over="ignore"):
                    wanted = wanted.astype(read.dtype)
                np.testing.assert_allclose(read, wanted, rtol=4e-3 if dtype == "f16" else 1e-5, err_msg=str((dtype, what)))


def test_fractions_beside_integers_are_refused_in_functions_too():
    g = weft.Graph()
    i, x = g.input("i", [ROW], "i32"), g.input("x", [ROW])
    for name in ("add", "sub", "mul", "div", "floor_div", "mod", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal"):
        function = getattr(weft, name)
        refused(ValueError, f"{name}: i is i32, and the number is 2.5, which has a fraction", function, i, 2.5)
        refused(ValueError, "fraction", function, 2.5, i)
        assert function(x, 2.5).dims == function(2.5, x).dims == (ROW,)
    for wrong in (lambda: weft.where(i, i, 2.5), lambda: weft.where(i, 0.5, i), lambda: weft.clamp(i, 0, 2.5), lambda: weft.clamp(i, 0.5, 2),
                  lambda: weft.pad(i, ROW, 1, ("to", 7), 2.5), lambda: g.constant(2.5, (), "i32"), lambda: weft.constant(g, "i32", (), 2.5),
                  lambda: g.variable("v", [ROW], 0.5, "i32"), lambda: weft.variable(g, "v", "i32", [ROW], weft.constant_of(0.5)),
                  lambda: i / 2, lambda: i / i, lambda: 2.5 - i, lambda: i < 2.5):  # fmt: skip
        refused(REFUSALS, "fraction", wrong)
    made = [weft.where(i < 2, i, 7), weft.maximum(i, 1), weft.where(x < 2.5, x, 0), i + 1, 3 - i, i // 2, -7 % weft.maximum(i, 1), abs(i - 3)]
    program = weft.Program(weft.Mesh("data:2"), "row:data", made)
    program.write(i, range(5))
    program.write(x, range(5))
    program.run()
    wanted = [[0, 1, 7, 7, 7], [1, 1, 2, 3, 4], [0, 1, 2, 0, 0], [1, 2, 3, 4, 5], [3, 2, 1, 0, -1], [0, 0, 1, 1, 2], [0, 0, 1, 2, 1],
              [3, 2, 1, 0, 1]]  # fmt: skip
    assert [program.read(value).tolist() for value in made] == wanted


def test_long_integers_are_exact():
    g = weft.Graph()
    n = g.input("n", [ROW], "i64")
    numbers = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 12345]
    made = [weft.equal(n, number) for number in numbers] + [g.constant(number, [ROW], "i64") for number in numbers]
    program = weft.Program(weft.Mesh("data:2"), "row:data", made)
    program.write(n, numbers)
    program.run()
    for k, number in enumerate(numbers):
        assert program.read(made[k]).tolist() == [int(each == number) for each in numbers]
        assert program.read(made[5 + k]).tolist() == [number] * 5
    refused(ValueError, "9007199254740993, of which a double has no more", weft.constant, g, "i64", (), 2**53 + 1)


def test_arrays_and_truth_are_no_operands():
    g = weft.Graph()
    y = g.input("y", [ROW])
    array = np.ones(5)
    for name in OPERATORS:
        act = getattr(operator, name)
        for left, right in ((y, array), (array, y), (y, [1, 2]), (y, 1j)):
            refused(TypeError, "an array of shape|a list|a complex", act, left, right)
        refused(TypeError, ".", act, np.float32, y) if name not in ("eq", "ne") else None
    for wrong in (lambda: np.sin(y), lambda: np.asarray(y), lambda: np.add(y, 1.0), lambda: np.array([y, y]), lambda: float(y), lambda: list(y)):
        refused(TypeError, ".", wrong)
    for wrong in (lambda: bool(y), lambda: 1 if y > 0 else 2, lambda: not y, lambda: y < 1 and y > 0, lambda: 0 < y < 1):
        refused(TypeError, "has no truth before it is run.*weft.where", wrong)
    assert isinstance(y == y, weft.Value) and (y == y).dtype == "i32" and isinstance(y != 1, weft.Value)
    assert (y == None) is False and (y != "y") is True  # noqa: E711
    other = g.find("y")
    assert len({y, y, other}) == 2 and {y: 1}[y] == 1 and y in {y} and y in [y, other] and hash(y) == hash(y)
    program = weft.Program(weft.Mesh(), "", [y == y, y != 1])
    program.write(y, [0, 1, float("nan"), 3, 4])
    program.run()
    assert program.read(program.values[0]).tolist() == [1, 1, 0, 1, 1] and program.read(program.values[1]).tolist() == [1, 0, 1, 1, 1]


def test_arguments_fit_what_c_has():
    g = weft.Graph()
    x = g.input("x", [ROW])
    for given in (2**63, -(2**63) - 1, 2**64 + 1, 10**30):
        refused(ValueError, r"roll: by is -?\d+; it is a whole number from -9223372036854775808 to", weft.roll, x, ROW, given)
        refused(ValueError, "a dim's size, of row,", g.input, "y", [("row", given)])
    refused(TypeError, "roll: by is 2.0; it is a whole number", weft.roll, x, ROW, 2.0)
    refused(TypeError, "roll: by is '2'", weft.roll, x, ROW, "2")
    refused(TypeError, "size, of row, is 2.5", g.input, "y", [("row", 2.5)])
    refused(TypeError, "size, of row, is None", g.input, "y", [("row", None)])
    refused(TypeError, "a dim's name is 3", g.input, "y", [(3, 3)])
    refused(ValueError, "in which C would stop at the zero", g.input, "y\0z", [ROW])
    refused(TypeError, "input: name is 3", g.input, 3, [ROW])
    assert weft.roll(x, ROW, np.int8(-3)).dims == g.input("z", [("row", np.int64(5))]).dims == (ROW,)
    refused(TypeError, "sort: descending is 2; it is True or False", weft.sort, x, ROW, 2)
    refused(TypeError, "sort: descending is 'no'", weft.sort, x, ROW, "no")
    refused(ValueError, "gradients_seeded: flags is 4294967296; it is a whole number from -2147483648", weft.gradients_seeded, [x], [], [x], 1 << 32)
    for seed in (-1, 2**64):
        refused(ValueError, "Graph: seed is", weft.Graph, seed)
    refused(TypeError, "Graph: seed is 0.5", weft.Graph, 0.5)
    refused(TypeError, "adam: rate is 'fast'; it is a number", weft.adam, weft.mean(x), rate="fast")
    refused(ValueError, "shampoo: every is 18446744073709551616", weft.shampoo, weft.mean(x), every=1 << 64)
    refused(TypeError, "Mesh: text is 2", weft.Mesh, 2)
    refused(TypeError, "Layout: text is 3", weft.Layout, 3)
    refused(ValueError, "layout_store: stage is 4294967297", weft.Layout, "row:data", 2**32 + 1)
    y = weft.relu(x)
    refused(ValueError, "compile: unroll is", weft.Program, weft.Mesh(), "", y, unroll=1 << 63)
    refused(TypeError, "compile: strict is 'yes'", weft.Program, weft.Mesh(), "", y, strict="yes")
    refused(TypeError, "compile: precision is 'WEFT_PRECISION_BF61'; did you mean WEFT_PRECISION_BF16", weft.Program, weft.Mesh(), "", y,
            precision="WEFT_PRECISION_BF61")
    program = weft.Program(weft.Mesh(), "", y)
    refused(ValueError, "run: times is -1", program.run, -1)
    refused(TypeError, "run: times is 1.5", program.run, 1.5)
    refused(ValueError, "initial_of", weft.initial_of, "zeros", 10**400, 1)
    refused(ValueError, "dataset_seek|text_open: seed is -1", weft.text_open, __file__, 6, -1)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, "-", test() or "ok", flush=True)

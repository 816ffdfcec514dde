"""data_test.py ROOT [MESH LAYOUT]: chains from Python: records and batches are those of the files, in C's order, with threads and from any
position; programs are fed from what Python iterates, on one rank and on several; what cannot be is an exception with a sentence.

LIBWEFT names the library. Exit status 77: numpy is not here."""
import os
import sys
import tempfile
import threading

from start import np, root, weft

import weft.data

mesh, layout = (sys.argv[2], sys.argv[3]) if len(sys.argv) > 3 else ("data:2", "batch:data")
RECORDS = 25
folder = tempfile.mkdtemp(prefix="weft-data-")
texts = ["", *("word " * (i * 7 % 5) + str(i) for i in range(1, RECORDS))]


def path_of(name):
    return os.path.join(folder, name)


def write_files():
    np.save(path_of("x.npy"), np.arange(RECORDS * 6, dtype="f4").reshape(RECORDS, 2, 3))
    with open(path_of("t.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(f'{{"id": {i}, "text": "{text}", "row": {list(range(i % 3 + 1))}}}\n' for i, text in enumerate(texts))
    with open(path_of("n.csv"), "w", encoding="utf-8") as file:
        file.writelines(["id,half\n", *(f"{i},{i / 2}\n" for i in range(RECORDS))])


def refused(kind, words, function, *given, **options):
    try:
        function(*given, **options)
    except kind as error:
        assert all(word in str(error) for word in words.split("|")), f"{error} does not say {words}"
        return
    raise AssertionError(f"nothing was raised that says {words}")


def numbers(name="n.csv"):
    return weft.data.open(path_of(name))


def test_records_are_those_of_the_file():
    chain = numbers()
    assert len(chain) == RECORDS and chain.format == "csv"
    assert [(field.name, field.dtype, field.dims) for field in chain.fields] == [("id", "i64", ()), ("half", "f64", ())]
    for i, record in enumerate(chain):
        assert record["id"] == i and record["half"] == i / 2
    assert chain[RECORDS + 3]["id"] == 3
    batch = weft.data.open(path_of("x.npy")).read(4, 3)
    assert batch["array"].dtype == np.float32 and np.array_equal(batch["array"], np.arange(150, dtype="f4").reshape(25, 2, 3)[4:7])


def test_texts_and_rows_of_other_sizes_are_lists():
    chain = weft.data.open(path_of("t.jsonl"), fields=["text", "row"])
    found = chain.read(0, RECORDS)
    assert found["text"] == texts
    assert [list(row) for row in found["row"]] == [list(range(i % 3 + 1)) for i in range(RECORDS)]
    text, row = chain.fields
    assert text.is_text and text.dims[0][1] is None and row.is_ragged and not row.is_text


def order(seed, n, i):
    return i // n * n + weft.c.lib.weft_permute(seed + i // n * 0xD6E8FEB86659FD93 & (1 << 64) - 1, n, i % n)


def test_a_shuffle_has_the_order_of_c():
    chain = numbers().shuffle(seed=7)
    found = [int(i) for batch in chain.batch(4, passes=3) for i in batch["id"]]
    assert found == [order(7, RECORDS, i) % RECORDS for i in range(3 * RECORDS)]


def test_threads_and_positions_change_nothing():
    def scale(batch):
        return {"x": batch["half"] * 10, "id": batch["id"]}

    def batches(ahead, threads, position=0):
        made = numbers().shuffle(seed=2).map(scale).batch(4, passes=2)
        made.position = position
        return made.prefetch(ahead, threads) if ahead else made

    plain = list(batches(0, 0))
    assert [len(batch["x"]) for batch in plain] == [4, 4, 4, 4, 4, 4, 1] * 2 and len(batches(0, 0)) == 7
    for ahead, threads in ((1, 1), (3, 2), (8, 4)):
        for one, other in zip(plain, batches(ahead, threads), strict=True):
            assert np.array_equal(one["x"], other["x"]) and np.array_equal(one["id"], other["id"])
    interrupted, seen = batches(3, 2), []
    for batch in interrupted:
        seen.append(batch)
        if len(seen) == 5:
            break
    rest = list(batches(2, 1, position=interrupted.position))
    assert interrupted.position == 20 and np.array_equal(rest[0]["id"], plain[5]["id"]) and np.array_equal(rest[-1]["id"], plain[-1]["id"])
    assert threading.active_count() == 1, threading.enumerate()


def test_each_for_is_the_next_pass():
    batches = numbers().shuffle(seed=1).batch(10, drop=True)
    first, second = ([list(map(int, batch["id"])) for batch in batches] for _ in range(2))
    assert len(first) == len(second) == 2 == len(batches) and first != second and batches.position == 2 * RECORDS
    frozen = numbers().shuffle(seed=1).freeze().batch(10)
    assert [list(batch["id"]) for batch in frozen] == [list(batch["id"]) for batch in frozen]


def test_chains_are_joined():
    both = weft.data.concat([numbers().take(0, 5), numbers().take(20)])
    assert [int(record["id"]) for record in both] == [*range(5), *range(20, 25)]
    turns = weft.data.interleave([numbers().take(0, 2), numbers().take(10, 3)])
    assert [int(record["id"]) for record in turns] == [0, 10, 1, 11, 12]
    mixed = weft.data.mix([numbers().take(0, 10), numbers().take(10, 10)], [3, 1])
    assert sum(int(record["id"]) < 10 for record in mixed) == 15 and "mix 0.75:0.25" in mixed.facts
    a = numbers()
    weft.data.concat([a, numbers()])
    refused(weft.Error, "closed", len, a)
    assert numbers().facts == numbers().facts != numbers().shuffle(1).facts
    windows = weft.data.text(path_of("t.jsonl"), 8)
    joined = "\n".join(texts).encode()
    assert bytes(windows[2]["tokens"]) == joined[16:24] and bytes(windows[2]["targets"]) == joined[17:25]


def documents():
    return weft.data.open(path_of("t.jsonl"), fields="text")


def test_a_filter_asks_a_function_of_each_record():
    seen = []

    def is_long(record):
        seen.append(record["id"])
        assert record["text"] == texts[int(record["id"])] and list(record["row"]) == list(range(int(record["id"]) % 3 + 1))
        return len(record["text"]) > 8

    folder_of_index = path_of("index")
    for n_threads in (1, 3):
        chain = weft.data.open(path_of("t.jsonl")).filter(is_long, n_threads=n_threads)
        assert [record["text"] for record in chain] == [text for text in texts if len(text) > 8] and sorted(seen) == list(range(RECORDS))
        assert "filter is_long, index" in chain.facts
        seen.clear()
    for n_asked in (RECORDS, 0):  # the second time the index is there
        weft.data.open(path_of("t.jsonl")).filter(is_long, folder=folder_of_index)
        assert len(seen) == n_asked
        seen.clear()
    arrays = weft.data.open(path_of("x.npy"))
    assert np.array_equal(arrays.filter(lambda record: record["array"].shape == (2, 3) and record["array"][0, 0] % 12 == 0).read(1)["array"][0], np.arange(12, 18).reshape(2, 3))
    assert [int(record["id"]) for record in numbers().filter(lambda record: record["half"] > 11, name="large")] == [23, 24]

    def breaks(record):
        if record["id"] >= 20:
            raise KeyError(int(record["id"]))
        return True

    refused(KeyError, "20", numbers().filter, breaks, n_threads=3)
    chain = numbers()
    refused(weft.Error, "leaves none of 25", chain.filter, lambda record: False)
    assert len(chain) == RECORDS  # as it was


def test_documents_are_split_and_packed():
    parts = documents().split(ord(" "))
    assert [record["text"] for record in parts] == [word + (" " if k < text.count(" ") else "") for text in texts if text for k, word in enumerate(text.split(" "))]
    packed = documents().pack(32, end=10, folder=path_of("index"), n_threads=2)
    assert [(field.name, field.dtype, field.dims) for field in packed.fields] == [(name, "i32", (("seq", 32),)) for name in ("tokens", "targets", "segments", "positions")]
    found = []
    for window in packed:
        for segment in range(1, window["segments"].max() + 1):
            at = window["segments"] == segment
            found.append(bytes(window["tokens"][at].astype("u1")).decode())
            assert list(window["positions"][at]) == list(range(at.sum())) and list(window["targets"][at]) == [*window["tokens"][at][1:], 10]
        assert (window["targets"][window["segments"] == 0] == -1).all()
    assert sorted(found) == sorted(text for text in texts if text)
    assert documents().pack(32, end=10, folder=path_of("index"), field="text").facts == packed.facts


def test_texts_are_encoded_as_they_are_read():
    words = sorted({word for text in texts for word in text.split()})

    def to_words(text):
        return [words.index(word) for word in text.split()]

    for n_threads in (1, 3):
        chain = documents().encode(to_words, folder=path_of("index"), n_threads=n_threads)
        assert [list(record["tokens"]) for record in chain] == [to_words(text) for text in texts]
        assert "encode to_words of text, index" in chain.facts
    windows, joined = documents().encode(to_words).windows(8, between=len(words)), []
    for text in texts:
        joined.extend([*to_words(text), len(words)])
    assert len(windows) == (len(joined) - 2) // 8
    for i, window in enumerate(windows):
        assert list(window["tokens"]) == joined[8 * i:8 * i + 8] and list(window["targets"]) == joined[8 * i + 1:8 * i + 9]
    assert bytes(documents().windows(5)[1]["tokens"]) == "".join(texts).encode()[5:10]
    both = weft.data.concat([chain, documents().encode(to_words)]).pack(16).batch(2).prefetch(2, 2)
    del chain
    assert sum(int((batch["targets"] >= 0).sum()) for batch in both) == 2 * sum(len(to_words(text)) - 1 for text in texts if text)

    def breaks(text):
        raise KeyError("word")

    refused(weft.Error, "KeyError|word|encode breaks, record 0", documents().encode, breaks)
    refused(weft.Error, "element [0] is 0.5", documents().encode, lambda text: [0.5])
    refused(weft.Error, "more tokens than there is room for", documents().encode, lambda text: np.zeros(len(text) + 17, "i4"))
    refused(weft.Error, "row of tokens|shape (1, 1)", documents().encode, lambda text: [[1]])


def test_rows_of_any_length_come_in_buckets():
    chain = weft.data.open(path_of("t.jsonl"), fields=["id", "row"]).bucket(10, folder=path_of("index"))
    found = {}
    for bucket in chain:
        for r, (begin, end) in enumerate(zip(bucket["offsets"], bucket["offsets"][1:])):
            if end > begin:
                found[int(bucket["id"][r])] = list(bucket["row"][begin:end])
    assert found == {i: list(range(i % 3 + 1)) for i in range(RECORDS)} and "% full" in chain.facts
    refused(weft.Error, "record 1 has 2 in row|1 have room", weft.data.open(path_of("t.jsonl"), fields=["id", "row"]).bucket, 1)


def test_what_is_kept_changes_nothing():
    kept = path_of("kept")
    plain = documents().pack(32)
    for _ in range(2):
        held = documents().pack(32).snapshot(kept, n_threads=2).cache(1 << 20)
        assert held.facts == plain.facts and len(os.listdir(kept)) == 1
        for one, other in zip(plain.batch(3), held.batch(3).prefetch(2, 2), strict=True):
            assert all(np.array_equal(one[name], other[name]) for name in one)
    assert [record["text"] for record in documents().snapshot(kept)] == texts


def program_of(n):
    g = weft.Graph()
    x = g.input("half", [("batch", n)], "f64")
    return weft.Program(weft.Mesh(mesh), layout, [weft.sum([], x)])


def test_a_program_is_fed_from_what_python_iterates():
    program, total = program_of(4), []
    made = ({"half": [i, i, i, i + 0.5]} for i in range(9))
    for _ in weft.data.feed(program, made, ahead=3):
        program.run()
        total.append(program.read(program.values[0]))
    assert total == [4 * i + 0.5 for i in range(9)]
    for batch in weft.data.feed(program, numbers().map(lambda batch: {"half": batch["half"]}).batch(4, passes=None).prefetch()):
        if batch["half"][0] == 2:
            break
    assert threading.active_count() == 1

    def breaks():
        yield {"half": np.zeros(4)}
        raise KeyError("the third")

    refused(KeyError, "the third", list, weft.data.feed(program, breaks()))
    refused(weft.Error, "no input id", list, weft.data.feed(program, numbers().batch(4)))
    refused(TypeError, "dicts of arrays", list, weft.data.feed(program, [1]))
    refused(TypeError, "a weft.Program", list, weft.data.feed(1, []))
    assert threading.active_count() == 1


def test_a_chain_is_a_data_set_of_c():
    program = program_of(5)
    data = weft.data.open(path_of("n.csv"), fields="half").dataset(n_threads=2, n_ahead=2)
    weft.dataset_start(data, program)
    for step in range(4):
        weft.dataset_next(data, program)
        program.run()
        assert program.read(program.values[0]) == sum(range(5 * step, 5 * step + 5)) / 2
    assert weft.dataset_facts(data).startswith("data: csv: ")


def test_any_number_of_ranks_may_read():
    for n_readers in (0, 1, 2):
        program = program_of(5)
        data = weft.data.open(path_of("n.csv"), fields="half").dataset(n_readers=n_readers)
        weft.dataset_feed(data, n_threads=2, n_readers=n_readers)
        weft.dataset_start(data, program)
        weft.dataset_next(data, program)
        program.run()
        assert program.read(program.values[0]) == sum(range(5)) / 2
        refused(weft.Error, "has been started", weft.dataset_feed, data, n_readers=1)
    many = weft.data.open(path_of("n.csv"), fields="half").dataset(n_readers=9)
    refused(weft.Error, "9 readers on mesh data:2, which has 2 ranks; give 1 to 2", weft.dataset_start, many, program)


def test_what_cannot_be_is_an_exception_with_a_sentence():
    refused(weft.Error, "No such file|as n.csv", weft.data.open, path_of("m.csv"))
    refused(weft.Error, "did you mean half?", weft.data.open, path_of("n.csv"), fields=["halv"])
    refused(weft.Error, "nearest is", weft.data.open, path_of("n.csv"), format="txet")
    refused(weft.Error, "there are 25; take less", numbers().take, 20, 9)
    refused(TypeError, "cannot be called", numbers().filter, 3)
    refused(ValueError, "give one, as name=", numbers().filter, lambda record: True, folder=path_of("index"))
    for name, given in (("filter", [len]), ("encode", [len]), ("windows", [8]), ("pack", [8]), ("bucket", [8]), ("split", [1]), ("snapshot", [folder]), ("cache", [9])):
        refused(weft.Error, f"{name} first and map then", getattr(numbers().map(dict), name), *given)
    refused(weft.Error, "seq|0", documents().pack, 0)
    refused(weft.Error, "2 fields may be documents|txet", weft.data.open(path_of("t.jsonl")).pack, 8, field="txet")
    refused(weft.Error, "filter first and shuffle then", numbers().shuffle().filter, bool, name="all")
    refused(weft.Error, "different sizes of text", documents().cache, 100)
    refused(weft.Error, "0 bytes", numbers().cache, 0)
    refused(TypeError, "folder is None", numbers().snapshot, None)
    refused(ValueError, "batch: n is 0", numbers().batch, 0)
    refused(ValueError, "a pass has 25 records", numbers().batch, 26, drop=True)
    refused(ValueError, "seed is -1", numbers().shuffle, -1)
    refused(TypeError, "cannot be called", numbers().map, 3)
    refused(TypeError, "gave ndarray; it gives a dict", list, numbers().map(lambda batch: batch["id"]).batch(4))
    refused(ValueError, "was given 4 records and gave 2 records of id", list, numbers().map(lambda batch: {"id": batch["id"][:2]}).batch(4))
    refused(weft.Error, "C does not call", numbers().map(dict).dataset)
    refused(weft.Error, "map the whole", weft.data.concat, [numbers().map(dict)])
    refused(ValueError, "2 chains and 1 weights", weft.data.mix, [numbers(), numbers()], [1])
    refused(weft.Error, "weight 1 is 0", weft.data.mix, [numbers(), numbers()], [1, 0])
    a = numbers()
    refused(weft.Error, "twice", weft.data.mix, [a, a], [1, 1])
    refused(weft.Error, "field 0 of chain 0", weft.data.concat, [weft.data.open(path_of("n.csv"), fields="id"), weft.data.open(path_of("x.npy"))])
    refused(weft.Error, "title", weft.data.text, path_of("t.jsonl"), 8, field="title")


def test_a_file_that_changes_ends_the_reading():
    with open(path_of("c.csv"), "w", encoding="utf-8") as file:
        file.writelines(["id\n", *(f"{i}\n" for i in range(100))])
    batches = weft.data.open(path_of("c.csv")).batch(10).prefetch(2, 2)
    iterator = iter(batches)
    next(iterator)
    with open(path_of("c.csv"), "a", encoding="utf-8") as file:
        file.write("100\n")
    refused(weft.Error, "was changed while it is read", list, iterator)
    assert threading.active_count() == 1


if __name__ == "__main__":
    write_files()
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name)
    import shutil

    shutil.rmtree(folder)

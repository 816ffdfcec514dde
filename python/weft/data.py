"""data: chains of records from Python: files opened, ordered and read as numpy arrays, and programs fed from any iterable.

    import weft.data
    for batch in weft.data.open("train.parquet").shuffle(seed=1).map(scale).batch(32).prefetch(4):
        batch["image"], batch["label"]          # numpy arrays

Names are C's (weft/data.h): open, text, concat, interleave, mix; shuffle, take, repeat, freeze; filter, encode, split, windows, pack,
bucket, snapshot, cache. A stage changes the chain that it is called on and gives it back. map takes a Python function of a batch, filter one of a
record, encode one of a text. Records are read by C without Python's lock, so threads read at once.
"""
import collections
import ctypes
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy

from . import Program, _c as c, _numbers
from ._convert import checked
from ._numbers import DTYPES
from ._values import Error, Handle, Opened

__all__ = ["Batches", "Chain", "Field", "concat", "feed", "interleave", "mix", "open", "text"]

Field = collections.namedtuple("Field", "name dtype dims is_ragged is_text labels")
Field.__doc__ = "Of a record: dims are pairs of a name and a size, None where each record has its own; labels are names of classes."

_Path = str | bytes | os.PathLike
_READ_AT_ONCE = 256  # records, where they are asked for one by one


def _call(name, *given):
    error = c.types["weft_error"]()
    checked(getattr(c.lib, name)(*given, ctypes.byref(error)), error)


def _whole(given, what, low=0):
    number = _numbers.number(given, ctypes.c_int64, what)
    if number < low:
        raise ValueError(f"{what} is {number}; it is at least {low}")
    return number


class Chain(Handle):
    """Records with named fields, len(chain) of them in a pass. Record i is the same on every machine; there is no end."""

    def __init__(self, handle):
        self._own("chain", handle)
        self._maps, self._calls = [], []  # of Python: C calls the latter

    # ---- what it holds ----

    def __len__(self):
        return c.lib.weft_chain_records(self.handle)

    @property
    def fields(self):
        """Of what C reads: functions of map may make others of them."""
        lib, chain = c.lib, self.handle
        made = []
        for i in range(lib.weft_chain_fields(chain)):
            shape, is_ragged = lib.weft_chain_field_shape(chain, i).contents, lib.weft_chain_is_ragged(chain, i)
            dims = tuple((shape.dims[d].name.decode(), None if d == 0 and is_ragged else shape.dims[d].size) for d in range(shape.n_dims))
            dtype = lib.weft_dtype_name(lib.weft_chain_field_dtype(chain, i)).decode()
            labels = tuple(lib.weft_chain_label(chain, i, k).decode(errors="replace") for k in range(lib.weft_chain_labels(chain, i)))
            made.append(Field(lib.weft_chain_field_name(chain, i).decode(), dtype, dims, is_ragged,
                              dtype == "u8" and [name for name, _ in dims] == ["byte"], labels))
        return made

    @property
    def facts(self):
        """What decides its records, in words, with a digest; functions of map are not in it."""
        return c.lib.weft_chain_facts(self.handle).decode(errors="replace")

    @property
    def format(self):
        return c.lib.weft_chain_format(self.handle).decode()

    def __repr__(self):
        return f"<weft.data.Chain of {len(self)} records: {', '.join(field.name for field in self.fields)}>"

    # ---- stages ----

    def _stage(self, name, *given):
        _call(f"weft_chain_{name}", ctypes.byref(self.handle), *given)
        return self

    def shuffle(self, seed: int = 0, block: int = 0) -> "Chain":
        """A permutation of a pass, another one each pass; block: weft_chain_shuffle says what that is for disks."""
        return self._stage("shuffle", _whole(block, "shuffle: block"), _numbers.number(seed, ctypes.c_uint64, "shuffle: seed"))

    def take(self, first: int, count: int = 0) -> "Chain":
        return self._stage("take", _whole(first, "take: first"), _whole(count, "take: count"))

    def repeat(self, times: int) -> "Chain":
        return self._stage("repeat", _whole(times, "repeat: times"))

    def freeze(self) -> "Chain":
        """Each pass is the first one again."""
        return self._stage("freeze")

    def _indexed(self, stage, /, **options):
        """A stage with options of C's. It is of the records that C reads: a function of map would be above it, not below."""
        if self._maps:
            raise Error(1, f"{stage}: the chain has a map in Python, which C does not call; {stage} first and map then")
        return self._stage(stage, ctypes.byref(c.types[f"weft_{stage}_options"](**options)))

    def filter(self, function: Callable[[dict], bool], name: str | None = None, folder: _Path | None = None, n_threads: int = 1) -> "Chain":
        """The records for which function({field: number, array or text}) is true, in their order. Each is asked for once, and which stay
        is an index. In a folder it is found again by the chain and the name, the function's own by itself: another function needs
        another name. What it raises is raised here, of the first record that does so."""
        if not callable(function):
            raise TypeError(f"filter: {function!r} cannot be called; give a function of a record, a dict by field")
        asked, named = _Asked(self, function), _name_of("filter", function, name, folder)
        call = c.types["weft_filter_function"](asked)
        try:
            return self._indexed("filter", name=named, function=call, **_kept("filter", folder, n_threads))
        except Error:
            asked.raise_first()
            raise

    def encode(self, function: Callable[[str], Sequence[int]], name: str | None = None, field: str | None = None, folder: _Path | None = None,
               n_threads: int = 1) -> "Chain":
        """In place of a text its tokens: function(text) gives them, a row of whole numbers of at most as many as the text has bytes, and 16
        more. How many each record has is an index, as filter's is; a text is encoded again when a part of it is read."""
        if not callable(function):
            raise TypeError(f"encode: {function!r} cannot be called; give a function of a text")
        call = c.types["weft_encode_function"](_Encoding(function))
        field = None if field is None else _numbers.text(field, "encode: field")
        named = _name_of("encode", function, name, folder)
        made = self._indexed("encode", name=named, field=field, function=call, **_kept("encode", folder, n_threads))
        self._calls.append(call)
        return made

    def split(self, token: int, folder: _Path | None = None, n_threads: int = 1) -> "Chain":
        """Records of one field, a text or a row of whole numbers, become documents: each goes up to and with the next such token."""
        return self._indexed("split", token=_numbers.number(token, ctypes.c_int64, "split: token"), **_kept("split", folder, n_threads))

    def windows(self, seq: int, between: int = -1) -> "Chain":
        """Records of one field, texts or rows of tokens, joined and cut into windows: fields tokens and targets [seq]. between: a byte or
        token that is put between two; below 0 none is."""
        numbers = {name: _numbers.number(given, ctypes.c_int64, f"windows: {name}") for name, given in (("seq", seq), ("between", between))}
        return self._indexed("windows", **numbers)

    def pack(self, seq: int, field: str | None = None, end: int = -1, look_ahead: int = 0, folder: _Path | None = None, n_threads: int = 1) -> "Chain":
        """Windows of whole documents: fields tokens, targets, segments, positions [seq]; weft_chain_pack says how. end: the target of a
        document's last token; below 0 it has none."""
        numbers = {name: _numbers.number(given, ctypes.c_int64, f"pack: {name}") for name, given in (("seq", seq), ("end", end), ("look_ahead", look_ahead))}
        field = None if field is None else _numbers.text(field, "pack: field")
        return self._indexed("pack", field=field, **numbers, **_kept("pack", folder, n_threads))

    def bucket(self, values: int, field: str | None = None, look_ahead: int = 0, folder: _Path | None = None, n_threads: int = 1) -> "Chain":
        """Buckets of rows of any length: the field has them one behind the other [values], and row r is [offsets[r], offsets[r + 1]). Other
        fields come a row each."""
        numbers = {name: _numbers.number(given, ctypes.c_int64, f"bucket: {name}") for name, given in (("values", values), ("look_ahead", look_ahead))}
        field = None if field is None else _numbers.text(field, "bucket: field")
        return self._indexed("bucket", field=field, **numbers, **_kept("bucket", folder, n_threads))

    def snapshot(self, folder: _Path, n_threads: int = 1) -> "Chain":
        """A pass is written into a file of the folder, and read from there, now and in later runs."""
        if folder is None:
            raise TypeError("snapshot: folder is None; name the folder where the file is, and is looked for")
        return self._indexed("snapshot", **_kept("snapshot", folder, n_threads))

    def cache(self, bytes: int) -> "Chain":  # noqa: A002: as C calls it
        """Records stay in memory once they have been read, the first of a pass that there is room for."""
        if self._maps:
            raise Error(1, "cache: the chain has a map in Python, which C does not call; cache first and map then")
        return self._stage("cache", _numbers.number(bytes, ctypes.c_int64, "cache: bytes"))

    def map(self, function: Callable[[dict], dict]) -> "Chain":
        """function({field: array [records, ...]}) gives such a dict. It gets batches of any number of records, and what it makes of one
        must not depend on the others: so order may be changed before or after."""
        if not callable(function):
            raise TypeError(f"map: {function!r} cannot be called; give a function of a batch, a dict of arrays by field")
        self._maps.append(function)
        return self

    def batch(self, n: int, passes: int | None = 1, drop: bool = False) -> "Batches":
        """Batches of n records, the last one of a pass shorter; drop: it is left out. passes None: for ever."""
        return Batches(self, _whole(n, "batch: n", 1), passes, drop)

    def dataset(self, n_threads=1, n_ahead=1, n_readers=0):
        """What weft.dataset_start binds to a program: C reads, and each rank its own part; or n_readers ranks read, each record once, and
        the others get theirs from them. The chain is used up."""
        if self._maps:
            raise Error(1, "dataset: the chain has a map in Python, which C does not call; iterate it, and write its batches, or weft.data.feed a program")
        handle, error = ctypes.POINTER(c.types["weft_dataset"])(), c.types["weft_error"]()
        numbers = {"n_threads": n_threads, "n_ahead": n_ahead, "n_readers": n_readers}
        options = c.types["weft_feed_options"](*(_numbers.number(given, ctypes.c_int, f"dataset: {name}") for name, given in numbers.items()))
        checked(c.lib.weft_chain_dataset(ctypes.byref(self.handle), ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)), error)
        made = Opened("dataset", handle)
        made.needs.extend(self._calls)
        return made

    # ---- reading ----

    def read(self, first: int, n: int = 1) -> dict:
        """Records [first, first + n) as a dict of arrays [n, ...] by field; of texts, and of fields with other sizes in each record,
        a list of n."""
        first, n = _whole(first, "read: first"), _whole(n, "read: n", 1)
        batch = {field.name: self._read_field(i, field, first, n) for i, field in enumerate(self.fields)}
        for function in self._maps:
            batch = _mapped(function, batch, n)
        return batch

    def __getitem__(self, i):
        """A record: a dict by field. Of any pass: chain[len(chain)] is the first of the second one."""
        return _row(self.read(i), 0)

    def __iter__(self):
        """The records of one pass, one by one."""
        for batch in self.batch(_READ_AT_ONCE):
            for i in range(_count(batch)):
                yield _row(batch, i)

    def _read_field(self, i, field, first, n):
        lengths = None
        sizes = [size for _, size in field.dims]
        if field.is_ragged:
            lengths = (ctypes.c_int64 * n)()
            _call("weft_chain_lengths", self.handle, first, n, i, lengths)
            lengths = numpy.frombuffer(lengths, numpy.int64)
            sizes = sizes[1:]
        shape = [int(lengths.sum()) if field.is_ragged else n, *sizes]
        dtype = numpy.uint16 if field.dtype == "bf16" else DTYPES[field.dtype]
        made = numpy.empty(shape, dtype)
        room = made if made.nbytes else numpy.empty(1, dtype)
        _call("weft_chain_read", self.handle, first, n, i, room.ctypes.data, made.nbytes)
        made = _numbers.from_bf16(made) if field.dtype == "bf16" else made
        if not field.is_ragged:
            return made
        rows = numpy.split(made, numpy.cumsum(lengths)[:-1])
        return [bytes(row).decode(errors="replace") for row in rows] if field.is_text else rows


def _kept(name, folder, n_threads):
    """The options that all stages with an index have."""
    return {"folder": None if folder is None else _numbers.text(folder, f"{name}: folder"), "n_threads": _numbers.number(n_threads, ctypes.c_int, f"{name}: n_threads")}


def _name_of(stage, function, name, folder):
    """What stands for a function in the chain's digest."""
    named = name or getattr(function, "__name__", "")
    if not name and not named.isidentifier():
        if folder is not None:
            raise ValueError(f"{stage}: the function has no name, and an index in a folder is found by it; give one, as name=\"long\"")
        named = "function"
    return _numbers.text(named, f"{stage}: name")


class _Encoding:
    """A function of a text as C calls it, by several threads, as long as the chain lives."""

    def __init__(self, function):
        self.function = function

    def __call__(self, argument, text, n_bytes, tokens, n, error):
        try:
            made = numpy.ascontiguousarray(self.function(ctypes.string_at(text, n_bytes).decode(errors="replace")))
            made = _numbers.fit(made if made.size else made.astype("i4"), "i32", "encode: what the function gave")
            if made.ndim != 1:
                raise ValueError(f"encode: the function gave an array of shape {made.shape}; it gives a row of tokens")
            n[0] = made.size
            if made.size <= n_bytes + c.constants["WEFT_ENCODE_MORE"]:
                ctypes.memmove(tokens, made.ctypes.data, made.nbytes)
            return 0
        except BaseException as raised:  # C passes on the words alone
            error[0].status = 1
            error[0].message = f"{type(raised).__name__}: {raised}".encode(errors="replace")[:300]
            return 1


class _Asked:
    """A function of a record as C calls it, by several threads. What it raises is kept."""

    def __init__(self, chain, function):
        self.fields, self.function, self.raised = [_Field(field) for field in chain.fields], function, {}

    def __call__(self, argument, i, numbers, counts, stays, error):
        try:
            stays[0] = bool(self.function({field.name: field.of(numbers[f], counts[f]) for f, field in enumerate(self.fields)}))
            return 0
        except BaseException as raised:  # KeyboardInterrupt too: C cannot pass it on
            self.raised[i] = raised
            return 1

    def raise_first(self):
        if self.raised:
            raise self.raised[min(self.raised)]


class _Field:
    """A field of a record in C's memory as what Chain.read gives of it."""

    def __init__(self, field):
        self.name, self.is_text, self.is_half = field.name, field.is_text, field.dtype == "bf16"
        self.dtype = numpy.dtype("uint16") if self.is_half else DTYPES[field.dtype]
        self.shape = tuple(-1 if size is None else size for _, size in field.dims)
        self.bytes = self.dtype.itemsize
        for _, size in field.dims:
            self.bytes *= 1 if size is None else size
        self.is_ragged = field.is_ragged

    def of(self, address, count):
        n = self.bytes * count if self.is_ragged else self.bytes
        held = ctypes.string_at(address, n) if n else b""
        if self.is_text:
            return held.decode(errors="replace")
        array = numpy.frombuffer(held, self.dtype).reshape((count, *self.shape[1:]) if self.is_ragged else self.shape)
        array = _numbers.from_bf16(array) if self.is_half else array
        return array if self.shape else array[()]


def _count(batch):
    return len(next(iter(batch.values())))


def _row(batch, i):
    return {name: rows[i] for name, rows in batch.items()}


def _mapped(function, batch, n):
    called = getattr(function, "__name__", "the function")
    made = function(batch)
    if not isinstance(made, dict) or not made:
        raise TypeError(f"map: {called} gave {type(made).__name__}; it gives a dict of arrays by field")
    for name, rows in made.items():
        if not hasattr(rows, "__len__") or len(rows) != n:
            has = f"{len(rows)} records" if hasattr(rows, "__len__") else f"a {type(rows).__name__}"
            raise ValueError(f"map: {called} was given {n} records and gave {has} of {name}; it gives as many")
    return made


class Batches:
    """An iterable of batches. Each `for` goes on where the last one stopped, at the record `position`: a pass has its own order, and a run
    that is continued sets it."""

    def __init__(self, chain, n, passes, drop):
        self.chain, self.n, self.drop, self.position = chain, n, drop, 0
        self.passes = None if passes is None else _whole(passes, "batch: passes", 1)
        self.ahead = self.threads = 0
        if drop and n > len(chain):
            raise ValueError(f"batch: batches of {n}, and a pass has {len(chain)} records; give a smaller n, or not drop")

    def __len__(self):
        """Batches of a pass."""
        return len(self.chain) // self.n if self.drop else -(-len(self.chain) // self.n)

    def prefetch(self, ahead: int = 2, threads: int = 1) -> "Batches":
        """So many batches are read before they are wanted, by so many threads; their order stays."""
        self.ahead, self.threads = _whole(ahead, "prefetch: ahead", 1), _whole(threads, "prefetch: threads", 1)
        return self

    def _pieces(self):
        """(first record, records, the position behind them), from the position to the end of the last pass."""
        records = len(self.chain)
        begin = self.position // records
        passes = itertools.count(begin) if self.passes is None else range(begin, begin + self.passes)
        for number in passes:
            at = max(self.position, number * records) if number == begin else number * records
            end = (number + 1) * records
            while at < end:
                n = min(self.n, end - at)
                behind = end if n < self.n or self.drop and end - at - n < self.n else at + n
                if n == self.n or not self.drop:
                    yield at, n, behind
                at = behind

    def __iter__(self):
        pieces = self._pieces()
        read = _read_ahead(pieces, self.chain.read, self.ahead, self.threads) if self.ahead else ((piece, self.chain.read(*piece[:2])) for piece in pieces)
        for (_, _, behind), batch in read:
            self.position = behind
            yield batch


def _read_ahead(pieces, read, ahead, threads):
    pool, waiting = ThreadPoolExecutor(threads, "weft.data"), collections.deque()
    try:
        for piece in itertools.chain(pieces, [None] * ahead):
            if piece is not None:
                waiting.append((piece, pool.submit(read, *piece[:2])))
            if len(waiting) > ahead or piece is None and waiting:
                first, made = waiting.popleft()
                yield first, made.result()
    finally:
        for _, made in waiting:
            made.cancel()
        pool.shutdown()


# ---- opening ------------------------------------------------------------------------------------------------------------


def _opened(name, path, options):
    handle, error = ctypes.POINTER(c.types["weft_chain"])(), c.types["weft_error"]()
    checked(getattr(c.lib, name)(_numbers.text(path, f"{name[5:]}: path"), ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)), error)
    return Chain(handle)


def open(path: _Path, format: str | None = None, fields: str | Sequence[str] | None = None, rows: int = 0, columns: int = 0) -> Chain:
    """A file, a pattern or a folder of any format that weft_chain_open knows. fields: names, as ["image", "label"]; rows, columns: images
    are scaled to that."""
    fields = ",".join(fields) if isinstance(fields, (list, tuple)) else fields
    ready = [None if given is None else _numbers.text(given, f"open: {name}") for name, given in (("format", format), ("fields", fields))]
    return _opened("weft_chain_open", path, c.types["weft_open_options"](*ready, _whole(rows, "open: rows"), _whole(columns, "open: columns")))


def text(path: _Path, seq: int, field: str | None = None, n_words: int = 0) -> Chain:
    """Windows of a text, or of a text field of records: fields tokens and targets."""
    field = None if field is None else _numbers.text(field, "text: field")
    return _opened("weft_chain_text", path, c.types["weft_text_options"](_whole(seq, "text: seq", 1), _whole(n_words, "text: n_words"), field))


def _joined(name, chains, *more):
    chains = list(chains)
    for chain in chains:
        if not isinstance(chain, Chain):
            raise TypeError(f"{name}: {chain!r} is no chain; weft.data.open gives one")
        if chain._maps:
            raise Error(1, f"{name}: a chain with a map in Python cannot be joined with others; map the whole instead")
    if len(set(map(id, chains))) < len(chains):
        raise Error(1, f"{name}: one chain is there twice; open it twice, or repeat it")
    pointers = (ctypes.POINTER(c.types["weft_chain"]) * max(1, len(chains)))(*[chain.handle for chain in chains])
    handle = ctypes.POINTER(c.types["weft_chain"])()
    _call(f"weft_chain_{name}", pointers, *more, len(chains), ctypes.byref(handle))
    for chain in chains:  # they are the new one's
        chain._end.detach()
        chain._handle = None
    made = Chain(handle)
    made._calls = [call for chain in chains for call in chain._calls]
    return made


def concat(chains: Iterable[Chain]) -> Chain:
    """One behind the other. The chains are used up, here and below."""
    return _joined("concat", chains)


def interleave(chains: Iterable[Chain]) -> Chain:
    """One record of each in turn."""
    return _joined("interleave", chains)


def mix(chains: Iterable[Chain], weights: Sequence[float]) -> Chain:
    """By weights: in every stretch each has its share."""
    chains, weights = list(chains), [_numbers.number(weight, ctypes.c_double, "mix: a weight") for weight in weights]
    if len(weights) != len(chains):
        raise ValueError(f"mix: {len(chains)} chains and {len(weights)} weights; give each a weight")
    return _joined("mix", chains, (ctypes.c_double * max(1, len(weights)))(*weights))


# ---- programs -----------------------------------------------------------------------------------------------------------


class _End:
    def __init__(self, error=None):
        self.error = error


def _run_ahead(items, ready, ahead):
    """What an iterable gives, made ready by a thread, `ahead` of them before they are wanted. What it raises is raised here."""
    made, stop = queue.Queue(ahead), threading.Event()

    def put(item):
        while not stop.is_set():
            try:
                return made.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work():
        try:
            for item in items:
                put(ready(item))
                if stop.is_set():
                    return
            put(_End())
        except BaseException as error:
            put(_End(error))

    thread = threading.Thread(target=work, name="weft.data", daemon=True)
    thread.start()
    try:
        while not isinstance(item := made.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stop.set()
        thread.join()


def feed(program: Program, batches: Iterable[dict], ahead: int = 2) -> Iterator[dict]:
    """for batch in weft.data.feed(program, batches): program.run()

    Each of `batches`, any iterable of dicts by names of inputs, is written into the program before it is given. A thread makes them,
    `ahead` of them before they are wanted. On several processes all iterate the same batches."""
    if not isinstance(program, Program):
        raise TypeError(f"feed: {program!r} is no program; give a weft.Program")
    ahead, found = _whole(ahead, "feed: ahead", 1), {}

    def check(batch):
        if not isinstance(batch, dict):
            raise TypeError(f"feed: a batch is a {type(batch).__name__}; give dicts of arrays by names of inputs")
        return batch

    for batch in _run_ahead(iter(batches), check, ahead):
        for name, numbers in batch.items():
            if name not in found:
                found[name] = _input(program, name, batch)
            program.write(found[name], numbers)
        yield batch


def _input(program, name, batch):
    """The program's input of that name."""
    if c.lib.weft_find_input(program.handle, _numbers.text(name, "feed: a name")).id == 0:
        raise Error(1, f"feed: the program has no input {name}; a batch has {', '.join(batch)}: leave out, by map, what is none of its inputs")
    return program.find(name)


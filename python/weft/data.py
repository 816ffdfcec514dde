"""data: chains of records from Python: files opened, ordered and read as numpy arrays, and programs fed from any iterable.

    import weft.data
    for batch in weft.data.open("train.parquet").shuffle(seed=1).map(scale).batch(32).prefetch(4):
        batch["image"], batch["label"]          # numpy arrays

Names are C's (weft/data.h): open, text, concat, interleave, mix; shuffle, take, repeat, freeze. A stage changes the chain that it is called
on and gives it back. map takes a Python function of a batch. Records are read by C without Python's lock, so threads read at once.
"""
import collections
import ctypes
import itertools
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy

from . import Program, _c as c, _numbers
from ._convert import checked
from ._numbers import DTYPES
from ._values import Error, Handle, Opened

__all__ = ["Batches", "Chain", "Field", "concat", "feed", "interleave", "mix", "open", "text"]

Field = collections.namedtuple("Field", "name dtype dims is_ragged is_text labels")
Field.__doc__ = "Of a record: dims are pairs of a name and a size, None where each record has its own; labels are names of classes."

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
        self._maps = []

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

    def shuffle(self, seed=0, block=0):
        """A permutation of a pass, another one each pass; block: weft_chain_shuffle says what that is for disks."""
        return self._stage("shuffle", _whole(block, "shuffle: block"), _numbers.number(seed, ctypes.c_uint64, "shuffle: seed"))

    def take(self, first, count=0):
        return self._stage("take", _whole(first, "take: first"), _whole(count, "take: count"))

    def repeat(self, times):
        return self._stage("repeat", _whole(times, "repeat: times"))

    def freeze(self):
        """Each pass is the first one again."""
        return self._stage("freeze")

    def map(self, function):
        """function({field: array [records, ...]}) gives such a dict. It gets batches of any number of records, and what it makes of one
        must not depend on the others: so order may be changed before or after."""
        if not callable(function):
            raise TypeError(f"map: {function!r} cannot be called; give a function of a batch, a dict of arrays by field")
        self._maps.append(function)
        return self

    def batch(self, n, passes=1, drop=False):
        """Batches of n records, the last one of a pass shorter; drop: it is left out. passes None: for ever."""
        return Batches(self, _whole(n, "batch: n", 1), passes, drop)

    def dataset(self, n_threads=1, n_ahead=1):
        """What weft.dataset_start binds to a program: C reads, and each rank its own part. The chain is used up."""
        if self._maps:
            raise Error(1, "dataset: the chain has a map in Python, which C does not call; iterate it, and write its batches, or weft.data.feed a program")
        handle, error = ctypes.POINTER(c.types["weft_dataset"])(), c.types["weft_error"]()
        options = c.types["weft_feed_options"](_numbers.number(n_threads, ctypes.c_int, "dataset: n_threads"), _numbers.number(n_ahead, ctypes.c_int, "dataset: n_ahead"))
        checked(c.lib.weft_chain_dataset(ctypes.byref(self.handle), ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)), error)
        return Opened("dataset", handle)

    # ---- reading ----

    def read(self, first, n=1):
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

    def prefetch(self, ahead=2, threads=1):
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


def open(path, format=None, fields=None, rows=0, columns=0):
    """A file, a pattern or a folder of any format that weft_chain_open knows. fields: names, as ["image", "label"]; rows, columns: images
    are scaled to that."""
    fields = ",".join(fields) if isinstance(fields, (list, tuple)) else fields
    ready = [None if given is None else _numbers.text(given, f"open: {name}") for name, given in (("format", format), ("fields", fields))]
    return _opened("weft_chain_open", path, c.types["weft_open_options"](*ready, _whole(rows, "open: rows"), _whole(columns, "open: columns")))


def text(path, seq, field=None, n_words=0):
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
    return Chain(handle)


def concat(chains):
    """One behind the other. The chains are used up, here and below."""
    return _joined("concat", chains)


def interleave(chains):
    """One record of each in turn."""
    return _joined("interleave", chains)


def mix(chains, weights):
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


def feed(program, batches, ahead=2):
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


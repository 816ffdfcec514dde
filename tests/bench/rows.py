"""rows.py: what is measured: the rows, and who takes part in each."""
from dataclasses import dataclass, field, replace

import conv_rows
import family_rows
import half_rows
import net_rows
import recurrent_rows
import sizes


@dataclass(frozen=True)
class Contender:
    name: str
    program: str
    arguments: tuple = ()
    package: str = ""  # of Python, which has to be there
    processes: int = 1
    environment: dict = field(default_factory=dict)
    build: str = None  # another build's program (--also)


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    group: str
    amount: float = 0  # operations or bytes of a call
    unit: str = "s"  # what the amount is of: "FLOP", "B"; "op": calls are `amount` ops; "s": a call is what counts
    steps: int = 3  # done and compared before anything is timed
    rounds: int = 7
    work: str = ""  # what workers call it, where that is another name
    apart: float = 1e-4  # at most, of what the workers computed

    asked = property(lambda self: self.work or self.name)
    is_training = property(lambda self: self.group in ("training", "net", "ranks", "split", half_rows.GROUP))
    is_start = property(lambda self: self.group == "start")
    is_efficiency = property(lambda self: self.group in ("ranks", "split", "ring"))

    def base(self, name):
        """Whose minimum another's is divided by."""
        if self.group == "all_reduce":
            return "Weft, processes"
        if self.group == "ranks" and name.startswith("PyTorch"):
            return "PyTorch"
        return "Weft"


ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
COLD = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}


def weft(name, *arguments, processes=1):
    return Contender(name, "bench_weft", arguments, processes=processes)


def torch(name, *arguments, **others):
    return Contender(name, "torch_worker.py", arguments, package="torch", **others)


def jax(name, *arguments):
    return Contender(name, "jax_worker.py", arguments, package="jax")


ALONE = [weft("Weft"), torch("PyTorch"), torch("PyTorch, compile", "--compile"), jax("JAX")]
DATA = ("--mesh", "data:2", "--layout", "batch:data")
TENSOR = ("--mesh", "model:2", "--layout", "heads:model,hidden:model,vocab:model")
RING = ("--mesh", "seq:2", "--layout", "seq:seq")
GROUPS = {
    "op": ALONE,
    "recurrent": ALONE,
    "net": ALONE,
    "training": ALONE,
    half_rows.GROUP: half_rows.contenders(weft, torch, jax),
    "executor": ALONE,
    "all_reduce": [weft("Weft, processes", "--mesh", "data:2", processes=2), weft("Weft, threads", "--mesh", "data:2"),
                   Contender("MPI_Allreduce", "bench_mpi", processes=2),
                   torch("gloo", "--ddp", environment=ONE_THREAD)],
    "ranks": [weft("Weft"), weft("Weft, data parallel", *DATA),
              weft("Weft, data parallel, processes", *DATA, processes=2), torch("PyTorch"),
              torch("PyTorch, DDP", "--ddp", environment=ONE_THREAD)],
    "split": [weft("Weft"), weft("Weft, data parallel, zero 1", *DATA, "--zero", "1"),
              weft("Weft, tensor parallel", *TENSOR), weft("Weft, tensor parallel, processes", *TENSOR, processes=2)],
    "ring": [weft("Weft"), weft("Weft, ring", *RING), weft("Weft, ring, processes", *RING, processes=2)],
}


def start_contenders(model):
    return [weft("Weft", "--first", model), weft("Weft, plan only", "--dry", model), torch("PyTorch", "--first", model),
            torch("PyTorch, compile", "--compile", "--first", model, environment=COLD), jax("JAX", "--first", model)]


def contenders(row, also):
    """also: name -> program of another build, which stands wherever Weft does."""
    found = start_contenders(row.name[len("start_"):]) if row.is_start else GROUPS[row.group]
    others = [replace(c, name=c.name.replace("Weft", name, 1), build=program)
              for name, program in also.items() for c in found if c.program == "bench_weft"]
    return found + others


def _matrix(n_read, n_written):
    """Bytes of a call of an op on matrices."""
    return 4 * (n_read + n_written) * sizes.MATRIX[0] * sizes.MATRIX[1]


_linears = [Row(name, f"x w: {m} x {k} by {k} x {n}", "op", 2.0 * m * k * n, "FLOP")
            for name, (m, k, n) in sizes.LINEAR.items()]
_fused = [Row(name, f"gelu(x w + b): {m} x {k} by {k} x {n}", "op", 2.0 * m * k * n, "FLOP")
          for name, (m, k, n) in sizes.LINEAR_GELU.items()]
_shape = "{} x {}".format(*sizes.MATRIX)
_body = "a step of GPT-2's 12 layers x 768, vocabulary 256, 4 x 64"
_all_reduces = [Row(name, f"a sum over 2 ranks, {n} bytes", "all_reduce", n, "B", steps=1)
                for name, n in sizes.ALL_REDUCE.items()]

_recurrent = [Row(name, recurrent_rows.what(name), "recurrent", recurrent_rows.flops(name), "FLOP")
              for name in recurrent_rows.SIZES]
_recurrent.append(Row("scan_1000", "{} trips of tanh(state + x), {} elements".format(*recurrent_rows.SCAN), "recurrent",
                      recurrent_rows.SCAN[0], "op"))

ROWS = _linears + _fused + _recurrent + [
    Row("softmax", f"softmax of {_shape}", "op", _matrix(1, 1), "B"),
    Row("layer_norm", f"layer norm of {_shape}", "op", _matrix(1, 1), "B"),
    Row("gelu", f"gelu of {_shape}", "op", _matrix(1, 1), "B"),
    Row("add", f"x + y, {_shape}", "op", _matrix(2, 1), "B"),
    Row("adamw", "AdamW's step of {} x {}, 28 bytes a parameter".format(*sizes.ADAMW), "op",
        28.0 * sizes.ADAMW[0] * sizes.ADAMW[1], "B"),
    *conv_rows.make(Row),
    *(Row(name, f"{function}, {family_rows.shape_of(name)}", "op", n_bytes, "B")
      for name, (function, _, n_bytes) in family_rows.FAMILIES.items()),
    Row("executor", f"{sizes.EXECUTOR} times a product of 2 x 2 and a softmax", "executor", 2 * sizes.EXECUTOR, "op"),
    Row("char", "a step of 4 layers x 128, 4 heads, 65 letters, 12 x 64", "training"),
    Row("gpt2_4x64", "a step of GPT-2 124M, vocabulary 50,304, 4 x 64", "training"),
    Row("gpt2_1x1024", "a step of GPT-2 124M, vocabulary 50,304, 1 x 1024", "training"),
    *half_rows.rows(Row),
    *(Row(name, what, "net") for name, what in net_rows.WHAT.items()),
    *_all_reduces,
    Row("data_parallel", f"{_body}: 1 process on 2 cores, 2 ranks on 1 each", "ranks", work="gpt2_bytes"),
    Row("split_weights", f"{_body}, where ranks share the weights", "split", work="gpt2_bytes"),
    Row("ring_attention", "causal attention with its gradients, {} x {} heads, {} rows of {}: rows on 1 process, on 2 ranks".format(
        *net_rows.RING), "ring"),
    Row("start_char", "from the command to the first loss, 4 layers x 128", "start", rounds=3),
    Row("start_gpt2_4x64", "from the command to the first loss, GPT-2 124M, 4 x 64", "start", rounds=3),
]
assert {row.asked for row in ROWS if row.is_training and row.asked not in net_rows.WHAT} == set(sizes.GPT2)

"""What ./run bench rests on: workers that compute the same, a refusal where machines or results moved, a page of it."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "guards"))
import numpy as np

import bench
import device
import gpt2
import guards
import ops
import page
import predicted
import process
import rows
import sizes
import worker

PROGRAMS = Path(os.environ["WEFT_BENCH"])
CALM = mock.Mock()  # nobody waits here


def weft(*arguments):
    return process.Worker("Weft", [str(PROGRAMS / "bench_weft"), *arguments], {})


def looked(w, row, steps=1):
    opened = w.ask(f"open {row}")
    assert "seconds" in opened, opened
    return w.ask(f"look {steps}")["numbers"]


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[1])
import process
workers = [process.Worker("one", command.split(), {}) for command in sys.argv[2:]]
for w in workers:
    w.ask("open add")
    w.stop()
print(*(pid for w in workers for pid in process.family(w.process.pid)), flush=True)
time.sleep(600)
"""


def is_there(pid):
    return process.state(pid) not in ("Z", None)


class Ending(unittest.TestCase):
    def test_nothing_stays_of_a_bench_that_is_killed(self):
        commands = [str(PROGRAMS / "bench_weft")]
        if shutil.which("mpirun"):
            commands.append(f"mpirun --allow-run-as-root --oversubscribe -n 2 {commands[0]}")
        for number in (signal.SIGKILL, signal.SIGINT):
            bench_process = subprocess.Popen([sys.executable, "-c", KILLED, str(Path(__file__).parent), *commands],
                                             stdout=subprocess.PIPE, text=True)
            with bench_process:
                pids = [int(word) for word in bench_process.stdout.readline().split()]
                self.assertGreaterEqual(len(pids), 1 if len(commands) == 1 else 4)
                self.assertTrue(all(map(is_there, pids)))
                bench_process.send_signal(number)
            left = pids
            for _ in range(300):
                left = list(filter(is_there, left))
                if not left:
                    break
                time.sleep(0.1)
            self.assertEqual(left, [])


class Answering(unittest.TestCase):
    def test_a_row_that_is_not_open_is_neither_looked_at_nor_timed(self):
        w = weft()
        self.assertIn("skipped", w.ask("open no_such_row"))
        for line in ("look 1", "time 1 1"):
            self.assertRaisesRegex(process.Failed, "no row is open", w.ask, line)
        looked(w, "add")
        w.ask("close")
        self.assertRaisesRegex(process.Failed, "no row is open", w.ask, "time 1 1")
        w.end()


class OnADevice(unittest.TestCase):
    """device.py, on the CPU: the lines, what is said where PyTorch is not there, where losses differ, where memory ends."""

    def said(self, python):
        command = [sys.executable, str(Path(device.__file__)), "--programs", str(PROGRAMS), "--python", python, "--device", "cpu",
                   "--rounds", "1", "--only-trainings", "tiny"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def test_weft_is_measured_without_pytorch(self):
        lines = self.said("/nowhere/python3").splitlines()
        self.assertRegex(lines[0], "^PyTorch: skipped: no PyTorch: .*/nowhere/python3")
        self.assertRegex(lines[2], r"^  Weft: [0-9.]+ ms a step, losses 4\.1[0-9]+ 4\.1[0-9]+ 4\.0")

    def test_pytorch_has_the_same_losses_where_it_is(self):
        if device.torch_missing(sys.executable):
            self.skipTest("no PyTorch")
        self.assertRegex(self.said(sys.executable), r"  PyTorch: .* x Weft's, losses 4\.1")
        self.assertNotIn("APART", self.said(sys.executable))

    def test_losses_that_differ_are_told(self):
        one, other = device.Contender("one", []), device.Contender("other", [])
        one.walls = other.walls = [1.0]
        one.numbers, other.numbers = [4.0, 3.0], [4.0, 3.02]
        self.assertEqual(device.disagreement([one, other]), "")
        other.numbers = [4.0, 3.3]
        self.assertIn("APART", device.disagreement([one, other]))
        other.numbers = [4.0, float("nan")]
        self.assertIn("APART", device.disagreement([one, other]))

    def test_who_ends_in_a_turn_is_told_of_and_the_other_goes_on(self):
        one, other = device.Contender("one", []), device.Contender("other", [])
        one.numbers = other.numbers = [4.0]
        for c in (one, other):
            c.open, c.worker, c.forget = mock.Mock(), mock.Mock(blocks=1, calls=1), lambda: None
            c.worker.ask.return_value = {"wall": [1.0]}
        other.worker.ask.side_effect = [{"wall": [1.0]}, process.Failed("it ended with status -9")]
        device.measure("tiny", [one, other], 3, 1)
        self.assertEqual([len(c.walls) for c in (one, other)], [3, 0])
        self.assertIn("status -9", other.why)
        self.assertIn("status -9", device.reason([other]))

    def test_a_row_that_weft_did_not_do_is_no_success(self):
        command = [sys.executable, str(Path(device.__file__)), "--programs", str(PROGRAMS), "--python", "/nowhere/python3",
                   "--device", "cpu", "--rounds", "1", "--only-trainings", "nothing", "tiny"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertIn("  Weft: skipped: ", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_what_does_not_fit_beside_another_is_measured_alone(self):
        alive = []

        class One(device.Contender):
            def open(self, row, steps):
                if alive:
                    self.why = "OutOfMemoryError: CUDA out of memory"
                    return
                alive.append(self.name)
                self.worker = mock.Mock()

            def measure(self):
                self.walls.append(1.0)

            def close(self):
                if self.worker:
                    alive.remove(self.name)
                self.worker = None

        both = [One("one", []), One("other", [])]
        self.assertIn("one after the other", device.measure("tiny", both, 3, 1))
        self.assertEqual([len(c.walls) for c in both], [3, 3])


class Speaking(unittest.TestCase):
    def tearDown(self):
        for left in list(process.Worker.alive):
            left.end()

    def near(self, found, expected):
        for a, b in zip(found, expected, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6 * max(map(abs, expected)))

    def test_both_languages_begin_with_equal_numbers(self):
        x, y = ops.data(0, sizes.MATRIX), ops.data(1, sizes.MATRIX)
        self.near(looked(weft(), "add"), worker.sums(x + y))
        m, k, n = sizes.LINEAR["linear_256_768_768"]
        product = ops.data(0, (m, k)).astype(np.float64) @ ops.weight(1, (k, n))
        self.near(looked(weft(), "linear_256_768_768"), worker.sums(product))

    def test_weft_knows_every_row(self):
        w = weft("--mesh", "data:1")
        for row in rows.ROWS:
            # GPT-2 124M would take a second a step; that it is planned is enough
            if row.asked.startswith(("start_", "gpt2_", "all_reduce")):
                continue
            self.assertIn("seconds", w.ask(f"open {row.asked}"), row.name)
            w.ask("close")
        for name in sizes.GPT2:
            _, _, answer = process.first_line([str(PROGRAMS / "bench_weft"), "--dry", name], None)
            self.assertEqual(answer, {"loss": 0})

    def test_the_model_has_the_peers_variables(self):
        """Losses of three steps are the same number for every mesh, and fall; a first loss is about log(letters)."""
        alone = looked(weft(), "char", 3)
        self.near(looked(weft("--mesh", "data:2", "--layout", "batch:data"), "char", 3), alone)
        self.assertAlmostEqual(alone[0], np.log(65), delta=0.1)
        self.assertEqual(alone, sorted(alone, reverse=True))
        names = [name for name, *_ in gpt2.variables("gpt2_4x64")]
        self.assertEqual(len(names), len(set(names)))
        count = sum(int(np.prod(shape)) for _, shape, *_ in gpt2.variables("gpt2_4x64"))
        self.assertEqual(count, 124_439_808 + (50304 - 50257 + 64 - 1024) * 768)  # as published, but for two tables

    def test_all_reduce_sums_over_ranks(self):
        self.assertAlmostEqual(looked(weft("--mesh", "data:2"), "all_reduce_4KiB")[0], 3.0)

    def test_blocks_are_timed(self):
        w = weft()
        looked(w, "executor")
        wall = w.ask("time 5 2")["wall"]
        self.assertEqual(len(wall), 5)
        self.assertTrue(all(second > 0 for second in wall))

    def test_what_is_not_there_is_skipped_with_the_reason(self):
        w = weft()
        self.assertIn("no row of this name", w.ask("open nosuch")["skipped"])
        with self.assertRaisesRegex(process.Failed, "all there is"):
            w.ask("dance")

    def test_a_worker_that_dies_says_its_last_words(self):
        with self.assertRaisesRegex(process.Failed, "no such option: --nosuch"):
            weft("--nosuch").ask("about")
        with self.assertRaises(process.Failed):
            process.Worker("none", ["/nosuch/program"], {})

    def test_a_stopped_worker_does_nothing_and_goes_on(self):
        w = weft()
        looked(w, "executor")
        w.stop()
        self.assertEqual(set(map(process.state, process.family(w.process.pid))), {"T"})
        self.assertEqual(len(w.ask("time 1 1")["wall"]), 1)


class Refusing(unittest.TestCase):
    ROW = rows.Row("add", "x + y", "op", 12.0, "B")

    def measure(self, before, after, numbers):
        """A row of two contenders that answer so, of three rounds with probes around them that find so: two, and two."""
        probe = mock.Mock()
        probe.measure.side_effect = [before, self.SLOW, self.SLOW, after] * 2
        found = {name: mock.Mock(blocks=2, calls=1) for name in numbers}
        for name, w in found.items():
            w.name, w.cpu.return_value, w.ask.return_value = name, 0.0, {"wall": [2.0, 1.0]}
        contenders = [rows.Contender(name, "bench_weft") for name in numbers]
        workers = mock.Mock()
        workers.open.side_effect = lambda row, c: (found[c.name], {"numbers": numbers[c.name]})
        with mock.patch.object(bench, "say"):
            return bench.measure(self.ROW, contenders, workers, probe, CALM, rounds=3, tries=2)

    STILL = {"product": 100.0, "stream": 50.0}
    SLOW = {"product": 70.0, "stream": 20.0}  # a moment of a machine that is as good before it and after it

    def test_a_still_machine_and_equal_results_make_a_result(self):
        record = self.measure(self.STILL, self.STILL, {"Weft": [1.0, 0.5], "PyTorch": [1.00005, 0.5]})
        self.assertTrue(record["is_result"])
        self.assertEqual(record["contenders"]["PyTorch"]["minimum"], 1.0)
        self.assertEqual(record["contenders"]["PyTorch"]["median"], 1.5)
        self.assertEqual(record["contenders"]["PyTorch"]["ratio"], 1.0)
        self.assertEqual(record["contenders"]["PyTorch"]["samples"], 6)

    def test_probes_that_moved_refuse_it(self):
        for moved in ({"product": 89.0, "stream": 50.0}, {"product": 100.0, "stream": 56.0}):
            record = self.measure(self.STILL, moved, {"Weft": [1.0]})
            self.assertFalse(record["is_result"])
            self.assertIn("probes moved", record["why"])
            self.assertIn("NOT A RESULT", page.text(self.ROW, record))

    def test_other_losses_are_not_timed(self):
        record = self.measure(self.STILL, self.STILL, {"Weft": [4.0], "PyTorch": [4.0005]})
        self.assertFalse(record["is_result"])
        self.assertNotIn("minimum", record["contenders"]["PyTorch"])
        self.assertIn("PyTorch computed 4.0005 where Weft computed 4", record["why"])
        self.assertIsNotNone(bench.disagreement(self.ROW, {"Weft": {"numbers": [4.0]}, "JAX": {"numbers": [float("nan")]}}))
        self.assertIsNone(bench.disagreement(self.ROW, {"Weft": {"numbers": [0.0]}, "JAX": {"numbers": [0.0]}}))
        self.assertIsNotNone(bench.disagreement(self.ROW, {"Weft": {"numbers": [0.0]}, "JAX": {"numbers": [1.0]}}))


class Telling(unittest.TestCase):
    def test_efficiency_is_one_process_over_ranks(self):
        row = rows.Row("r", "ranks", "ranks")
        told = bench.summary(row, {"Weft": {}, "Weft, data parallel": {}},
                             {"Weft": {"wall": [3.0], "cpu": 1}, "Weft, data parallel": {"wall": [4.0], "cpu": 1}})
        self.assertEqual(told["Weft, data parallel"]["ratio"], 0.75)

    def test_the_page_has_every_row_and_only_results(self):
        c = {"minimum": 1e-3, "median": 2e-3, "cpu": 2e-3, "ratio": 1.0, "about": {"weft": "0.1.0"}}
        record = {"is_result": True, "load": 0.0, "commit": "abc", "when": "2026-11-22T00:00",
                  "probes": {"before": {"product": 9e10, "stream": 5e10}, "after": {"product": 9e10, "stream": 5e10}},
                  "contenders": {"Weft": c, "JAX": {"skipped": "it is not there"}}}
        data = {"machine": {"processor": "p", "cores": 2, "system": "s", "python": "3"},
                "rows": [{**record, "name": row.name} for row in rows.ROWS[1:]] +
                        [{**record, "name": rows.ROWS[0].name, "is_result": False, "why": "the probes moved"}]}
        text = page.tables(json.loads(json.dumps(data)))
        for row in rows.ROWS[1:]:
            self.assertIn(f"`{row.name}`: ", text)
        self.assertNotIn(f"`{rows.ROWS[0].name}`: ", text)
        self.assertIn("workers disagreed: " + rows.ROWS[0].name, text)
        self.assertIn("skipped: it is not there", text)


    def test_the_geometric_mean_is_of_each_row_s_best_peer(self):
        def record(name, is_result, **minima):
            return {"name": name, "is_result": is_result,
                    "contenders": {n.replace("_", ", "): {"minimum": m} for n, m in minima.items()}}
        records = [record("add", True, Weft=1.0, PyTorch=4.0, JAX=8.0), record("gelu", True, Weft=2.0, PyTorch=9.0, JAX=2.0),
                   record("softmax", False, Weft=2.0, PyTorch=1.0, before=0.1),
                   record("split_weights", True, Weft=1.0), record("data_parallel", True, Weft=1.0, PyTorch=9.0)]
        self.assertEqual(page.geometric_mean(records),
                         "2.00 of 2 rows, 0 of them below 1, the least 1.00 (gelu); with those that are no results "
                         "1.26 of 3 rows, 1 of them below 1, the least 0.50 (softmax)")
        self.assertIn("no row", page.geometric_mean(records[3:]))


class Guarding(unittest.TestCase):
    PLAN = {"bytes": 100, "collectives": 4, "arena": 640, "steps": 9, "digest": "aa"}

    def test_growth_is_worse_and_any_other_change_is_told(self):
        compare = lambda **now: guards.compare_plans({"p": self.PLAN}, {"p": {**self.PLAN, **now}})
        self.assertEqual(compare(), ([], []))
        self.assertEqual(len(compare(bytes=101)[0]), 1)
        self.assertEqual(len(compare(arena=704)[0]), 1)
        self.assertEqual(len(compare(bytes=99)[1]), 1)
        self.assertEqual(len(compare(digest="bb")[1]), 1)
        self.assertEqual(len(guards.compare_plans({"p": self.PLAN}, {})[1]), 1)

    def test_two_per_cent_of_instructions(self):
        compare = lambda n: list(guards.compare_instructions({"f": 1000}, {"f": n}))
        self.assertEqual((compare(1019), compare(981)), ([], []))
        self.assertEqual((len(compare(1021)), len(compare(979))), (1, 1))


class Predicting(unittest.TestCase):
    """Layouts that are told apart by what was measured, in three goes."""

    @staticmethod
    def row(layout, took, said):
        turns = [{"go": go, "fastest": seconds, "seconds": seconds, "predicted": said} for go, seconds in enumerate(took)]
        return predicted.Row("net", layout, "", 2, turns, None)

    def test_the_least_disturbed_turn_counts(self):
        self.assertEqual(self.row("a", [2.0, 1.0, 4.0], 1.1).ratio, 1.1)

    def test_orders(self):
        slow = self.row("slow", [2.0, 4.0, 2.0], 2.0)  # the machine was another one in the second go
        fast = self.row("fast", [1.0, 2.0, 1.0], 1.0)
        odd = self.row("odd", [1.5, 3.0, 1.5], 3.0)
        self.assertEqual(predicted.pairs_of([slow, fast]), [(1, 1, 1)])
        self.assertEqual(predicted.tau(predicted.pairs_of([slow, fast])), 1)
        self.assertAlmostEqual(predicted.tau(predicted.pairs_of([slow, fast, odd])), 1 / 3)
        self.assertAlmostEqual(predicted.tau_b(predicted.pairs_of([slow, fast, odd])), 1 / 3)

    def test_ties(self):
        a, b = self.row("a", [1.0, 1.1, 1.0], 1.0), self.row("b", [1.05, 1.0, 1.01], 1.0)
        c, slow = self.row("c", [1.05, 1.0, 1.01], 2.0), self.row("slow", [2.0, 2.0, 2.0], 1.01)
        self.assertEqual(predicted.pairs_of([a, b]), [(0, 0, 0)])
        self.assertEqual(predicted.pairs_of([a, c]), [(0, -1, -1)])
        self.assertIsNone(predicted.tau(predicted.pairs_of([a, c])))
        self.assertIsNone(predicted.tau_b(predicted.pairs_of([a, b])))
        nearly = predicted.pairs_of([slow, a])  # in the right order, but by less than what is told
        self.assertEqual((nearly, predicted.tau(nearly), predicted.tau_b(nearly)), ([(1, 1, 0)], 1, None))

    def test_one_lucky_turn_tells_nothing_apart(self):
        a, b = self.row("a", [1.5, 1.0, 1.6], 1.0), self.row("b", [1.5, 1.55, 1.5], 1.5)
        self.assertEqual(predicted.pairs_of([a, b])[0][0], 0)

    def test_too_few_goes(self):
        a, b = self.row("a", [1.0, 1.0], 1.0), self.row("b", [2.0, 2.0], 2.0)
        self.assertEqual(predicted.pairs_of([a, b]), [])


if __name__ == "__main__":
    unittest.main()

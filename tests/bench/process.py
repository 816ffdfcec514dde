"""process.py: workers as processes: asked by lines, stopped while others are measured, looked at through /proc."""
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 900  # seconds for an answer; a compiler may be in it


class Failed(Exception):
    """Why a worker cannot do what it was asked."""


def family(pid):
    """A process and all below it: mpirun's ranks are in groups of their own."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass  # it has just ended
    found = [pid]
    for member in found:
        found.extend(child for child, parent in parents.items() if parent == member)
    return found


def state(pid):
    """The letter that the kernel has for it: R, S, T (stopped), Z; None when it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def hurry(pid):
    """The highest priority that may be had, so that others wait. Linux weighs sessions first, then their processes."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, -20)
        Path(f"/proc/{pid}/autogroup").write_text("-20")
    except OSError:
        pass  # only root may


def _words(pid, name):
    """Lines of /proc/PID/status or of all threads' schedstat; nothing where the process has gone."""
    try:
        if name == "status":
            return Path(f"/proc/{pid}/status").read_text().splitlines()
        return [(t / "schedstat").read_text() for t in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


class Guardian:
    """A process that ends workers, stopped ones too, when this program has been killed and can no longer do so itself."""

    pipe = None  # to it; the kernel closes it, whatever becomes of this program

    @classmethod
    def tell(cls, word):
        if cls.pipe is None:
            end, cls.pipe = os.pipe()
            if os.fork() == 0:
                os.close(cls.pipe)
                cls._watch(end)
            os.close(end)
        os.write(cls.pipe, f"{word}\n".encode())

    @classmethod
    def _watch(cls, end):
        try:
            os.setsid()  # Ctrl-C is for the others
            workers = set()
            for line in os.fdopen(end):
                workers.symmetric_difference_update([abs(int(line))])
            for pid in workers:
                cls._kill(pid)
        finally:
            os._exit(0)

    @staticmethod
    def _kill(pid):
        for number in (signal.SIGSTOP, signal.SIGKILL):  # who is stopped starts no more of them
            for member in family(pid):
                try:
                    os.kill(member, number)
                except ProcessLookupError:
                    pass


def memory_left():
    """Bytes that a process may still have before others would be killed for it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


class Worker:
    alive = []  # to be ended, however this program ends

    def __init__(self, name, command, environment, is_hurried=True):
        self.name, self.blocks, self.calls = name, 1, 1
        self.said = tempfile.TemporaryFile(mode="w+")  # stderr
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                                            env=environment or None, start_new_session=True)
        except OSError as error:
            self.said.close()
            raise Failed(f"{command[0]}: {error.strerror}")
        Worker.alive.append(self)
        Guardian.tell(self.process.pid)
        if is_hurried:
            hurry(self.process.pid)
        self.pending = b""

    # -- lines

    def ask(self, line):
        self._signal(signal.SIGCONT)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_words())
        answer = self._read()
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _read(self):
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                raise Failed(self._last_words() if ready else f"no answer in {PATIENCE} s")
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def _last_words(self):
        self.said.seek(0)
        lines = [line.strip() for line in self.said.read().splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"it ended with status {self.process.poll()}"

    # -- turns

    def _signal(self, number):
        for pid in family(self.process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        """When it returns they do stand still, which takes a moment where the machine is busy."""
        end = time.monotonic() + PATIENCE
        self._signal(signal.SIGSTOP)
        while any(state(pid) not in ("T", "Z", None) for pid in family(self.process.pid)):
            if time.monotonic() > end:
                raise Failed(f"it did not stop in {PATIENCE} s")
            time.sleep(0.001)

    def end(self):
        if self not in Worker.alive:
            return
        Worker.alive.remove(self)
        try:
            self._end()
        finally:
            Guardian.tell(-self.process.pid)

    def _end(self):
        self._signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.said.close()

    def plan(self, turn, block):
        """How many calls are timed together, and how many such blocks are a turn."""
        once = self.ask("time 1 1")["wall"][0]
        if once < block:
            once = min(self.ask("time 20 1")["wall"])
        self.calls = max(1, round(block / once))
        self.blocks = min(1000, max(1, round(turn / (once * self.calls))))

    # -- what the kernel knows

    def cpu(self):
        """Seconds of all its threads so far."""
        return sum(int(words.split()[0]) for pid in family(self.process.pid) for words in _words(pid, "task")) * 1e-9

    def forget_peak(self):
        for pid in family(self.process.pid):
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                pass

    def peak(self):
        """The most memory that it has had since, in bytes; of several processes their sum."""
        lines = [line for pid in family(self.process.pid) for line in _words(pid, "status")]
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def first_line(command, environment):
    """Wall and CPU seconds of a program from its start to its first line, and that line."""
    with tempfile.TemporaryFile(mode="w+") as said:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL,
                                   env=environment, start_new_session=True)
        hurry(process.pid)
        line = process.stdout.readline()
        wall = time.monotonic() - begin
        process.stdout.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if not line:
            said.seek(0)
            words = [w.strip() for w in said.read().splitlines() if w.strip()]
            raise Failed(words[-1][:300] if words else f"it ended with status {process.returncode}")
    return wall, used.ru_utime + used.ru_stime, json.loads(line)

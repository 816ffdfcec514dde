"""peers.py: the programs that are measured: Weft's own, and PyTorch and JAX in a Python environment of their own, which
pip fills. A peer that cannot be had is skipped, with the reason."""
import shutil
import subprocess
import sys

from process import Failed


class Peers:
    def __init__(self, folder, programs, here, say):
        self.folder, self.programs, self.here, self.say = folder, programs, here, say
        self.python = folder / "bin/python"
        self.reasons = {}  # package -> why it is not there; None when it is

    def make(self, contenders):
        for package in sorted({c.package for c in contenders if c.package}):
            if package not in self.reasons:
                self.reasons[package] = self._have(package)

    def _run(self, command):
        """None, or the last line of what went wrong."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        lines = (done.stderr or done.stdout).strip().splitlines()
        return None if done.returncode == 0 else (lines[-1] if lines else f"status {done.returncode}")

    def _have(self, package):
        if not self.python.exists():
            why = self._run([sys.executable, "-m", "venv", self.folder])
            if why:
                shutil.rmtree(self.folder, ignore_errors=True)
                return f"no Python environment: {why}"
        works = [self.python, "-c", f"import numpy, {package}"]
        if self._run(works) is None:
            return None
        self.say(f"installing {package} and what it needs into {self.folder}; for torch that is 5 GB")
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy", package]
        return self._run(pip) or self._run(works)

    def command(self, contender):
        """The words that start a contender's worker."""
        if contender.package:
            if self.reasons[contender.package]:
                raise Failed(self.reasons[contender.package])
            return [str(self.python), str(self.here / contender.program), *contender.arguments]
        program = contender.build or self.programs / contender.program
        if contender.build is None and not program.exists():
            raise Failed(f"{program.name} was not built: no MPI was found")
        command = [str(program), *contender.arguments]
        if contender.processes == 1:
            return command
        mpirun = shutil.which("mpirun")
        if mpirun is None:
            raise Failed("there is no mpirun")
        return [mpirun, "-n", str(contender.processes), "--oversubscribe", "--bind-to", "core", *command]

"""serve_client.py: a server that is started for a test, and what its clients do: for serve_test.py and serve_program_test.py."""
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

PATIENCE = 120
SKIPPED = 77


def fail(message):
    raise SystemExit("FAIL: " + message)


def check(holds, message):
    if not holds:
        fail(message)


class Server:
    def __init__(self, command, launcher=()):
        self.is_launched = len(launcher) > 0
        self.process = subprocess.Popen([*launcher, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        if not line:
            said = self.process.communicate()[1].decode("utf-8", "replace")
            if "libmicrohttpd" in said:
                print("skipped: " + said.strip())
                sys.exit(SKIPPED)
            fail(f"{command} does not begin: {said}")
        self.host, port = line.rsplit("http://", 1)[1].split()[0].split("/")[0].rsplit(":", 1)
        self.port = int(port.rstrip(","))

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def raw(self, text=b""):
        s = socket.create_connection((self.host, self.port), timeout=PATIENCE)
        s.sendall(text)
        return s

    def ask(self, path, body=None, method="POST"):
        """Status and bytes."""
        c = self.connect()
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        c.request(method, path, body)
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, data

    def metric(self, name):
        status, data = self.ask("/metrics", method="GET")
        check(status == 200, f"/metrics: {status}")
        return float(next(line for line in data.decode().split("\n") if line.startswith("weft_serve_" + name + " ")).split()[-1])

    def wait_for(self, name, value):
        for _ in range(PATIENCE * 20):
            if self.metric(name) == value:
                return
            threading.Event().wait(0.05)
        fail(f"{name} is {self.metric(name)} and does not become {value}")

    @contextmanager
    def held(self):
        """The server does nothing: what clients send meanwhile lies unread, and connections are not let in."""
        self.process.send_signal(signal.SIGSTOP)
        yield
        self.process.send_signal(signal.SIGCONT)

    def end(self, status=0):
        """mpirun ends its processes itself soon after a SIGTERM; SIGUSR1 it hands on."""
        self.process.send_signal(signal.SIGUSR1 if self.is_launched else signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=PATIENCE)[1].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("SIGTERM does not end the server")
        check(self.process.returncode == status, f"the server ends with {self.process.returncode}: {said}")


@contextmanager
def serving(server):
    try:
        yield server
    except BaseException:
        server.process.kill()
        raise
    server.end()

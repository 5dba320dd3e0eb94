"""The program under test, started as a user starts it, with packages at versions that baselines have too."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import threading

from . import messages, paths
from .native import Failed

READY = re.compile(r"http://[^\s/]+:(\d+)/mcp")
START_S = 60


def data_packages():
    """The base packages, pinned as in packages/data.txt."""
    wanted = ("numpy", "pandas", "openpyxl", "requests", "matplotlib")
    pins = re.findall(
        r"^([A-Za-z0-9_.-]+==[^\s;\\]+)", (paths.BENCH / "packages/data.txt").read_text(), re.MULTILINE
    )
    return [pin for pin in pins if pin.split("==")[0] in wanted]


class Program:
    """`prims` with the settings of this run."""

    def __init__(self, path, flags=()):
        self.path = str(pathlib.Path(path).resolve())
        self.flags = list(flags)
        self.reference = self._output("config", "--reference")

    def _output(self, *arguments):
        return subprocess.run(
            [self.path, *arguments],
            env=paths.environment(),
            capture_output=True,
            text=True,
            check=True,
            cwd=paths.scratch(),
        ).stdout

    def version(self):
        return self._output("--version").strip()

    def has_setting(self, key):
        return f"`{key}`" in self.reference

    def command(self, name, *flags, state=None):
        packages = [word for pin in data_packages() for word in ("--base-packages", pin)]
        return [
            self.path,
            name,
            "--state-dir",
            str(state or paths.BUILD / "state"),
            "--python",
            paths.PYTHON,
            "--log-level",
            "warning",
            *packages,
            *self.flags,
            *flags,
        ]

    def serve(self, *flags, state=None):
        return Server(self.command("serve", "--port", "0", *flags, state=state))


class Server:
    """A running `prims serve`, or any server that prints its address."""

    def __init__(self, line, cwd=None):
        self.line = line
        self.log = []
        self.port = None
        listening = threading.Event()
        self.process = subprocess.Popen(
            line,
            env=paths.environment(),
            cwd=cwd or paths.scratch(),
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.reader = threading.Thread(target=self._read, args=(listening,), daemon=True)
        self.reader.start()
        if not listening.wait(START_S) or self.port is None:
            self.stop()
            raise Failed(f"{line[0]} did not start: {''.join(self.log[-20:])}")

    @property
    def pid(self):
        return self.process.pid

    def _read(self, listening):
        for text in self.process.stdout:
            self.log.append(text)
            found = READY.search(text)
            if found and self.port is None:
                self.port = int(found.group(1))
                listening.set()
        listening.set()

    def post(self, body, session=None):
        """One request on a connection of its own: the answer's message, and the session that it may have opened."""
        head, _, text = messages.http_bytes(body, self.port, session).partition("\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        headers.pop("Content-Length")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("POST", "/mcp", text.replace(messages.UNIQUE, "12345678").encode(), headers)
            response = connection.getresponse()
            raw = response.read().decode()
            session_id = response.headers.get("Mcp-Session-Id")
        finally:
            connection.close()
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            events = [line[5:] for line in raw.splitlines() if line.startswith("data:") and line[5:].strip()]
            raw = next(event for event in reversed(events) if '"id"' in event)
        return (json.loads(raw) if raw.strip() else {}), session_id

    def open_session(self):
        """A legacy session, initialized."""
        _, session = self.post(messages.initialize())
        self.post(messages.INITIALIZED, session)
        return session

    def run(self, code, **arguments):
        """One call; its structured result, which must be ok."""
        answer, _ = self.post(messages.run_code(code, **arguments))
        data = answer.get("result", {}).get("structuredContent")
        if not data or data.get("status") != "ok":
            raise Failed(f"the program did not run: {json.dumps(answer)[:2000]}")
        return data

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

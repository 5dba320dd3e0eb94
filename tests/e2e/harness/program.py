"""The real binary as a client or a shell starts it.

PRIMS names the program. Every test shares one state directory, so that packages are installed once, unless it asks for its
own. Programs start with the little environment that MCP clients give a server.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PRIMS = os.path.abspath(os.environ.get("PRIMS", "build/dev/prims"))
ROOT = pathlib.Path(__file__).resolve().parents[3]
READY = re.compile(rb"http://[^\s/]+:(\d+)/mcp")
START_S = 60  # how long a server may take to listen
SETTINGS = ("PRIMS_TEST_",)  # our own variables never reach the program

_shared_state = None
_started = []


def scratch(prefix="prims-e2e-"):
    """A new folder below the one the suite removes at its end."""
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=os.environ.get("PRIMS_TEST_SCRATCH") or None))


def shared_state():
    global _shared_state
    if _shared_state is None:
        given = os.environ.get("PRIMS_TEST_STATE")
        _shared_state = pathlib.Path(given) if given else scratch("prims-state-")
        _shared_state.mkdir(parents=True, exist_ok=True)
    return _shared_state


def templates():
    return os.environ.get("PRIMS_TEST_TEMPLATES", "on") == "on"


def environment(extra=None):
    """HOME, PATH and language only: what clients give a stdio server."""
    env = {name: os.environ[name] for name in ("HOME", "PATH", "USER") if name in os.environ}
    env["LANG"] = "C.UTF-8"
    if not templates():
        env["PRIMS_TEMPLATES"] = "false"
    env.update(extra or {})
    return env


def command(*arguments, state=None):
    """A command line of the program; `state` is for subcommands that take --state-dir."""
    line = [PRIMS, *map(str, arguments)]
    return [*line, "--state-dir", str(state)] if state else line


def prims(*arguments, state=None, env=None, stdin=None, timeout=180, cwd=None):
    """Runs a subcommand to its end. Text in, text out."""
    state = shared_state() if state is None else state
    return subprocess.run([PRIMS, *map(str, arguments)], env=environment({"PRIMS_STATE_DIR": str(state), **(env or {})}),
                          input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False, cwd=cwd,
                          errors="replace")


def start(line, env=None, **options):
    """A program that runs on; end_all() ends it at the latest."""
    process = subprocess.Popen(line, env=environment(env), start_new_session=True, **options)
    _started.append(process)
    return process


def end_all():
    for process in _started:
        if process.poll() is None:
            process.kill()
            process.wait()


class Server:
    """`prims serve` on a free port. Use as a context manager."""

    def __init__(self, *flags, state=None, env=None):
        self.state = pathlib.Path(state) if state else shared_state()
        self.flags = flags
        self.env = env
        self.log = bytearray()
        self.process = None
        self.port = None

    def __enter__(self):
        self.process = start(command("serve", "--port", "0", *self.flags, state=self.state), self.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        listening = threading.Event()
        self.reader = threading.Thread(target=self._read, args=(listening,), daemon=True)
        self.reader.start()
        if not listening.wait(START_S) or self.port is None:
            self.stop()
            raise AssertionError(f"the server did not start: {self.text()[-2000:]}")
        return self

    def _read(self, listening):
        for line in self.process.stdout:
            self.log += line
            found = READY.search(line)
            if found and self.port is None:
                self.port = int(found.group(1))
                listening.set()
        listening.set()

    def text(self):
        return bytes(self.log).decode("utf-8", "replace")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def alive(self):
        return self.process.poll() is None

    def terminate(self, seconds=20):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def stop(self):
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()

    def __exit__(self, *_):
        self.stop()


def wait_for(condition, seconds, step=0.05):
    """Polls until condition() is true; whether it became so. Only for what the system tells no event of."""
    end = time.monotonic() + seconds
    while True:
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(step)


def descendants(pid):
    """Every living process below pid."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = set(), [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found.add(child)
            todo.append(child)
    return found


def is_warm(pid):
    """Whether this process is a template, or a fork of one."""
    try:
        return b"/driver.py\0template\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


POOL_SIZE = 4


def pools_are_full(processes):
    """Each template has its forks that wait, and none is in the making."""
    warm = sum(map(is_warm, processes))
    return warm > 0 and warm % (1 + POOL_SIZE) == 0


def at_rest(pid, seconds=20):
    """How many processes a server has when it makes nothing ready any more: its template, its pool, and what runs."""
    ends = time.monotonic() + seconds
    since, seen = time.monotonic(), None
    while time.monotonic() < ends:
        below = descendants(pid)
        if below != seen:
            since, seen = time.monotonic(), below
        elif time.monotonic() - since > 1 and (not templates() or pools_are_full(below)):
            break
        time.sleep(0.05)
    return len(descendants(pid))


def remove(path):
    shutil.rmtree(path, ignore_errors=True)

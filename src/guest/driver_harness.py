"""Runs the driver under one interpreter, over a socket pair and without a sandbox, and plain Python beside it."""
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.path.join(HERE, "driver.py")
HELLO, RUN, RESULT, REFUSED = 1, 2, 3, 4
LINE_SIGNAL = signal.SIGRTMAX - 2


def frame(kind, fields, raw=b"", ident=7, version=1):
    text = json.dumps(fields).encode()
    return struct.pack("<IBBHQI", 4 + len(text) + len(raw), version, kind, 0, ident, len(text)) + text + raw


def frames(data):
    """[(kind, id, fields)] of everything the guest sent."""
    found = []
    while data:
        size, version, kind, flags, ident = struct.unpack_from("<IBBHQ", data)
        assert version == 1 and flags == 0
        payload, data = data[16:16 + size], data[16 + size:]
        length, = struct.unpack_from("<I", payload)
        found.append((kind, ident, json.loads(payload[4:4 + length].decode())))
    return found


class Ran:
    """What one program came to."""

    def __init__(self, status, out, err, sent):
        self.status, self.out, self.err = status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        self.sent = sent
        results = [fields for kind, _, fields in sent if kind == RESULT]
        self.results = len(results)
        self.value = (results[0].get("value") if results else None) or {}
        self.error = (results[0].get("error") if results else None) or {}
        self.text = self.value.get("text")


class Guest:
    """One interpreter with the driver in it, its workspace and its home."""

    def __init__(self, python):
        self.top = tempfile.mkdtemp(prefix="guest-")
        self.workspace, self.home, self.run_dir = (os.path.join(self.top, d) for d in ("data", "home", "run"))
        for directory in (self.workspace, self.home, self.run_dir):
            os.mkdir(directory)
        self.file = os.path.join(self.run_dir, "main.py")
        self.python = python
        self.environment = {"PATH": os.path.dirname(python) + ":/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8",
                            "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.top)

    def write(self, name, text):
        with open(os.path.join(self.workspace, name), "w") as file:
            file.write(text)

    def start(self, stdin=subprocess.DEVNULL):
        host, guest = socket.socketpair()
        self.lines, lines = os.pipe()

        def place():
            far = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (guest.fileno(), lines)]
            for number, fd in enumerate(far, 3):
                os.dup2(fd, number)
                os.close(fd)
            os.closerange(5, 100)

        self.process = subprocess.Popen([self.python, DRIVER], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=place, close_fds=False, env=self.environment, cwd=self.workspace)
        guest.close()
        os.close(lines)
        self.host = host

    def call(self, code, arguments=()):
        raw = code if isinstance(code, bytes) else code.encode("utf-8", "surrogatepass")
        self.host.sendall(frame(RUN, {"file": self.file, "workspace": self.workspace, "arguments": list(arguments)}, raw))

    def end(self, data=None, timeout=60):
        received = bytearray()

        def collect():
            try:
                for part in iter(lambda: self.host.recv(1 << 16), b""):
                    received.extend(part)
            except ConnectionResetError:
                pass

        reader = threading.Thread(target=collect)
        reader.start()
        try:
            out, err = self.process.communicate(data, timeout=timeout)
        finally:
            self.process.kill()
            self.host.shutdown(socket.SHUT_RDWR)
            reader.join()
            self.host.close()
            os.close(self.lines)
        return Ran(self.process.returncode, out, err, frames(bytes(received)))

    def run(self, code, arguments=(), stdin=None):
        self.start(subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        self.call(code, arguments)
        return self.end(stdin)

    def plain(self, code, arguments=(), stdin=None):
        """The same as a script of the workspace would do, under this interpreter without the driver."""
        with open(self.file, "wb") as file:
            file.write(code if isinstance(code, bytes) else code.encode("utf-8", "surrogatepass"))
        environment = dict(self.environment, PYTHONPATH=self.workspace)
        done = subprocess.run([self.python, self.file] + list(arguments), env=environment, cwd=self.workspace,
                              input=stdin or b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Ran(done.returncode, done.stdout, done.stderr, [])


def tidy(text):
    """Without what differs from one run to the next."""
    text = re.sub(r"/[^\s\"']*guest-\w+", "TOP", text)
    return re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", text)


class Case(unittest.TestCase):
    python = version = None
    maxDiff = None

    def run_code(self, code, arguments=(), stdin=None, **files):
        with Guest(self.python) as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            return guest.run(code, arguments, stdin)

    def same(self, code, arguments=(), stdin=None, **files):
        """Runs the program both ways and compares output, errors and exit status."""
        with Guest(self.python) as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            ran = guest.run(code, arguments, stdin)
        with Guest(self.python) as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            plain = guest.plain(code, arguments, stdin)
        self.assertEqual((tidy(ran.out), tidy(ran.err), ran.status), (tidy(plain.out), tidy(plain.err), plain.status))
        return ran

    def printed(self, code, out, **files):
        ran = self.run_code(code, **files)
        self.assertEqual((ran.err, ran.out), ("", out))
        return ran

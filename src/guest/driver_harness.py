"""Runs the driver under one interpreter, over a socket pair and without a sandbox, and plain Python beside it.

A `Template` lets the same tests run through forks of one waiting driver.
"""
import array
import fcntl
import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

# A shell has what runs in the background ignore it, which the interpreters started here would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

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


def environment_of(python, home):
    return {"PATH": os.path.dirname(python) + ":/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "MPLBACKEND": "Agg",
            "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def with_descriptors(*fds):
    """For the new process: these become 3, 4, ..."""
    def place():
        far = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]
        for number, fd in enumerate(far, 3):
            os.dup2(fd, number)
            os.close(fd)
        os.closerange(3 + len(fds), 100)
    return place


class Template:
    """A driver in template mode, forked for each call. Its native part is played by driver_forking.py.

    One that is `expecting` knows the workspace of all its guests before they get their calls.
    """

    def __init__(self, python, imports=(), memory=1 << 30, expecting=False):
        self.python = python
        self.top = tempfile.mkdtemp(prefix="template-")
        self.driver, self.home = os.path.join(self.top, "opt", "driver.py"), os.path.join(self.top, "home")
        os.mkdir(os.path.dirname(self.driver))
        for source in glob.glob(os.path.join(HERE, "*.py")):
            name = os.path.basename(source)
            if not name.startswith("driver_"):
                shutil.copy(source, os.path.join(os.path.dirname(self.driver), name))
        shutil.copy(os.path.join(HERE, "driver_forking.py"), os.path.join(os.path.dirname(self.driver), "forking.py"))
        os.mkdir(self.home)
        self.host, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.guest = os.path.join(self.top, "guest-0") if expecting else None
        settings = {"imports": list(imports), "memory": memory}
        if expecting:
            settings.update(file=os.path.join(self.guest, "run", "main.py"), workspace=os.path.join(self.guest, "data"))
        with open(os.devnull, "rb") as spec:
            self.process = subprocess.Popen([python, self.driver, "template", json.dumps(settings)], stdin=subprocess.DEVNULL,
                                            preexec_fn=with_descriptors(far.fileno(), spec.fileno()), close_fds=False,
                                            env=environment_of(python, self.home), cwd=self.top)
        far.close()
        self.warm = False

    def fork(self, *fds):
        if not self.warm:
            self.answer(b"waiting")
            self.warm = True
        shutil.rmtree(self.home)
        os.mkdir(self.home)
        self.host.sendmsg([b"fork"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        return int(self.answer(b"forked")[0])

    def answer(self, kind):
        """Answers come in order, since a test has one fork at a time."""
        words = self.host.recv(64).split()
        if words[:1] != [kind]:
            raise AssertionError("the template said %r and not %r" % (words, kind))
        return words[1:]

    def close(self):
        self.host.close()
        self.process.wait()
        shutil.rmtree(self.top)


class Fork(subprocess.Popen):
    """A fork of a template, as if this process had started it."""

    def __init__(self, template, stdin, private, lines):
        self.template = template
        theirs, ours = [], []
        for number in range(3):
            near, far = os.pipe() if number else os.pipe()[::-1]
            ours.append(near)
            theirs.append(far)
        if stdin == subprocess.DEVNULL:
            os.close(theirs[0])
            os.close(ours[0])
            theirs[0], ours[0] = os.open(os.devnull, os.O_RDONLY), None
        self.args, self.returncode = [template.python], None
        self.pid = template.fork(*theirs, private, lines)
        for fd in theirs:
            os.close(fd)
        self.stdin = None if ours[0] is None else os.fdopen(ours[0], "wb", 0)
        self.stdout, self.stderr = os.fdopen(ours[1], "rb"), os.fdopen(ours[2], "rb")
        self.encoding = self.errors = self.text_mode = self._input = None
        self._communication_started = False
        self._child_created, self._waitpid_lock = True, threading.Lock()

    def _try_wait(self, flags):
        if flags and not select.select([self.template.host], [], [], 0)[0]:
            return 0, 0
        pid, status = map(int, self.template.answer(b"ended"))
        return pid, status

    def poll(self):
        return self._internal_poll()

    def _internal_poll(self, *ignored, **more):
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)
        return self.returncode


class Guest:
    """One interpreter with the driver in it, its workspace and its home."""

    def __init__(self, python, template=None):
        if template and template.guest:
            self.top = template.guest
            os.mkdir(self.top)
        else:
            self.top = tempfile.mkdtemp(prefix="guest-")
        self.workspace, self.home, self.run_dir = (os.path.join(self.top, d) for d in ("data", "home", "run"))
        for directory in (self.workspace, self.home, self.run_dir):
            os.mkdir(directory)
        self.file = os.path.join(self.run_dir, "main.py")
        self.python, self.template = python, template
        self.driver = template.driver if template else DRIVER
        if template:
            self.home = template.home
        self.environment = environment_of(python, self.home)

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

        if self.template:
            self.process = Fork(self.template, stdin, guest.fileno(), lines)
        else:
            self.process = subprocess.Popen([self.python, DRIVER], stdin=stdin, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, close_fds=False, env=self.environment,
                                            preexec_fn=with_descriptors(guest.fileno(), lines), cwd=self.workspace)
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
    python = version = template = None
    maxDiff = None

    def guest(self):
        return Guest(self.python, self.template)

    def run_code(self, code, arguments=(), stdin=None, **files):
        with self.guest() as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            return guest.run(code, arguments, stdin)

    def same(self, code, arguments=(), stdin=None, **files):
        """Runs the program both ways and compares output, errors and exit status."""
        with self.guest() as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            ran = guest.run(code, arguments, stdin)
        with self.guest() as guest:
            for name, text in files.items():
                guest.write(name + ".py", text)
            plain = guest.plain(code, arguments, stdin)
        self.assertEqual((tidy(ran.out), tidy(ran.err), ran.status), (tidy(plain.out), tidy(plain.err), plain.status))
        return ran

    def printed(self, code, out, **files):
        ran = self.run_code(code, **files)
        self.assertEqual((ran.err, ran.out), ("", out))
        return ran

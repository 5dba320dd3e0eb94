"""Packages whose build code attacks the host, from a small index of our own on loopback.

The sdist's setup.py tries files of the host, a canary that listens on loopback, and the store of layers; the build only
succeeds when all three are out of reach. A second package builds a C extension, which must work.
"""

import hashlib
import http.server
import io
import os
import pathlib
import socket
import subprocess
import sys
import tarfile
import threading
import unittest

from harness import connection, program

ATTACK = '''
import os, socket, glob
from setuptools import setup
reached = []
for path in {paths!r}:
    try:
        with open(path, "rb") as f: f.read(1)
        reached.append(path)
    except OSError:
        pass
for port in {ports!r}:
    for host in ("127.0.0.1", "::1", "localhost", "10.0.2.2"):
        try:
            socket.create_connection((host, port), 1).close()
            reached.append((host, port))
        except OSError:
            pass
for path in {stores!r} + ["/", "/usr", "/etc", os.path.expanduser("~root")]:
    try:
        name = os.path.join(path, "prims-was-here")
        open(name, "w").close()
        reached.append(name)
    except OSError:
        pass
if reached:
    raise SystemExit("REACHED " + repr(reached))
setup(name="{name}", version="1.0", py_modules=["{module}"])
'''

EXTENSION_SETUP = '''
from setuptools import setup, Extension
setup(name="prims-test-extension", version="1.0", ext_modules=[Extension("prims_test_extension", ["ext.c"])])
'''

EXTENSION = '''
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "prims_test_extension", NULL, -1, methods};
PyMODINIT_FUNC PyInit_prims_test_extension(void) { return PyModule_Create(&module); }
'''

HANGS = "import time\nprint('building', flush=True)\ntime.sleep(3600)\n"
FAILS = "raise SystemExit('this build always fails: marker-5151')\n"


def sdist(name, files):
    """A source distribution in memory."""
    base = f"{name}-1.0"
    files = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", **files}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"{base}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"{base}.tar.gz", buffer.getvalue()


def setuptools_wheels():
    """What builds the packages; fetched once with the pip of the running environment."""
    folder = program.scratch()
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "-d", str(folder),
                    "setuptools==80.9.0", "wheel==0.45.1"], check=True, timeout=180)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Index(http.server.ThreadingHTTPServer):
    """PEP 503 over the files it is given."""

    def __init__(self, files):
        self.files = files
        self.asked = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/simple"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        parts = [part for part in self.path.split("/") if part]
        body = None
        if parts[:1] == ["simple"] and len(parts) == 2:
            links = [f'<a href="/files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
                     for name, data in self.server.files.items()
                     if name.replace("_", "-").lower().startswith(parts[1].lower() + "-")]
            body = ("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>").encode() if links else None
        elif parts[:1] == ["files"]:
            body = self.server.files.get(parts[1])
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html" if parts[:1] == ["simple"] else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class HostilePackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.canary = cls.enterClassContext(socket.create_server(("127.0.0.1", 0)))
        cls.canary.setblocking(False)
        state = program.scratch() / "state"
        secret = program.scratch() / "secret"
        secret.write_text("x")
        os.chmod(secret, 0o644)
        stores = [str(state), str(state / "layers"), str(program.shared_state()), str(program.shared_state() / "layers")]
        attack = ATTACK.format(paths=[str(secret), "/root/.bashrc", str(pathlib.Path.home() / ".profile"), program.PRIMS],
                               ports=[cls.canary.getsockname()[1]], stores=stores, name="prims-test-attack", module="prims_test_attack")
        made = dict([
            sdist("prims-test-attack", {"setup.py": attack, "prims_test_attack.py": "harmless = True\n"}),
            sdist("prims-test-extension", {"setup.py": EXTENSION_SETUP, "ext.c": EXTENSION}),
            sdist("prims-test-fails", {"setup.py": FAILS}),
            sdist("prims-test-hangs", {"setup.py": HANGS}),
        ])
        cls.index = Index({**made, **setuptools_wheels()})
        cls.addClassCleanup(cls.index.server_close)
        cls.addClassCleanup(cls.index.shutdown)
        env = {"PRIMS_INDEX_URL": cls.index.url, "PRIMS_BASE_PACKAGES": "setuptools", "PRIMS_INSTALL_TIMEOUT": "60s"}
        cls.server = cls.enterClassContext(program.Server(state=state, env=env))

    def call(self, code, *requirements, **options):
        with connection.connect(self.server, "http", "modern") as client:
            return client.call(code, requirements=list(requirements), **options)

    def test_build_code_reaches_nothing(self):
        answer = self.call("import prims_test_attack\nprint(prims_test_attack.harmless)\n", "prims-test-attack")
        self.assertNotIn("REACHED", answer.text)
        self.assertEqual((answer.status, answer.stdout), ("ok", "True\n"), answer)
        with self.assertRaises(BlockingIOError):
            self.canary.accept()

    def test_a_c_extension_builds_from_its_source(self):
        answer = self.call("import prims_test_extension\nprint(prims_test_extension.answer())\n", "prims-test-extension")
        self.assertEqual((answer.status, answer.stdout), ("ok", "42\n"), answer)

    def test_a_failing_build_shows_the_tools_own_lines(self):
        answer = self.call("print('never')", "prims-test-fails")
        self.assertEqual((answer.status, answer.is_error, answer.stdout), ("dependency_error", True, ""), answer)
        self.assertIn("marker-5151", answer.text)

    def test_a_build_that_hangs_is_ended(self):
        before = program.at_rest(self.server.process.pid)
        answer = self.call("print('never')", "prims-test-hangs")
        self.assertEqual(answer.status, "dependency_error", answer)
        self.assertTrue(program.wait_for(lambda: len(program.descendants(self.server.process.pid)) <= before + 2, 10))

    def test_other_private_addresses_stay_closed(self):
        """The index may live on loopback because the settings say so; a second port of the same host may not be reached."""
        self.assertEqual(self.call("print(1)").status, "ok")
        with self.assertRaises(BlockingIOError):
            self.canary.accept()


if __name__ == "__main__":
    unittest.main()

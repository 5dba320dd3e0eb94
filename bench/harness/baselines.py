"""What others take for the same: a clean interpreter, the same in bubblewrap, the floor, and Monty."""

import os
import shutil
import subprocess

from . import native, paths, thirdparty
from .native import Unavailable

HELLO = "print('hi %UNIQUE%')"


def clean_python(code, expect="", label="python3 -I -c, no sandbox", python=paths.PYTHON):
    """A clean interpreter from its start to its end: modules compiled, files cached."""
    program = [python, "-I", "-c", code]
    return native.measurement(label, "probe", "run", expect=expect, program=program, share=14)


def bubblewrap_line(*mounts):
    """bwrap --unshare-all with as little as Python needs."""
    if not shutil.which("bwrap"):
        raise Unavailable("bubblewrap is not installed: apt-get install bubblewrap")
    line = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/lib", "/lib64"):
        line += ["--symlink", "usr" + name, name] if os.path.islink(name) else ["--ro-bind", name, name]
    for folder in mounts:
        line += ["--ro-bind", str(folder), str(folder)]
    line += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/tmp/output", "--chdir", "/tmp"]
    tried = subprocess.run([*line, "/usr/bin/true"], env=paths.environment(), capture_output=True, text=True)
    if tried.returncode != 0:
        raise Unavailable(f"bubblewrap does not work here: {tried.stderr.strip()}")
    return line


def bubblewrap(code, expect="", label="bwrap --unshare-all + the same", python=paths.PYTHON, mounts=()):
    program = [*bubblewrap_line(*mounts), python, "-I", "-c", code]
    return native.measurement(label, "probe", "run", expect=expect, program=program, share=18)


def floor(label="floor: fork of a warm interpreter into all namespaces"):
    return native.measurement(label, "floor", "run", code=HELLO, expect="hi %UNIQUE%", share=6)


def monty(mode, code, expect):
    label = {"used": "Monty, used worker, new session", "new": "Monty, new worker process"}[mode]
    line = [thirdparty.venv("monty"), str(paths.BENCH / "rivals/monty_calls.py"), mode]
    return native.measurement(label, line, code=code, expect=expect, share=4)


def available(row, *makers):
    """The baselines that this machine has; a note for each that it has not."""
    found = []
    for maker in makers:
        try:
            measurement = maker()
            measurement.prepare()
            found.append(measurement)
        except Unavailable as missing:
            row.note(f"a baseline is left out: {missing}")
    return found

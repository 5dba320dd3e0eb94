"""The processes of a running server, as /proc shows them to whoever started it."""

import os
import pathlib
import re

from .native import Unavailable

PYTHON = re.compile(r"/python3?(\.\d+)?$")


class Process:
    def __init__(self, pid):
        self.pid = pid
        folder = pathlib.Path(f"/proc/{pid}")
        fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        self.parent = int(fields[1])
        self.started = int(fields[19])
        self.folder = folder

    def pid_namespace(self):
        return os.readlink(self.folder / "ns/pid")

    def is_python(self):
        try:
            return bool(PYTHON.search(os.readlink(self.folder / "exe").replace(" (deleted)", "")))
        except OSError:
            return False

    def maps(self, word):
        """Whether a file of that name is mapped: which packages a process has imported shows in that."""
        return word in (self.folder / "maps").read_text()

    def private_bytes(self):
        """What this process holds alone: Private_Clean and Private_Dirty."""
        text = (self.folder / "smaps_rollup").read_text()
        return (
            sum(int(size) for size in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE))
            * 1024
        )


def below(pid):
    """Every living process below pid."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                process = Process(int(entry.name))
            except OSError:
                continue
            children.setdefault(process.parent, []).append(process)
    found, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child.pid)
    return found


class Guest:
    """An interpreter below a server, with whatever else lives in its pid namespace: its init."""

    def __init__(self, python, others):
        self.python = python
        self.processes = [python, *others]
        self.heavy = python.maps("_multiarray_umath")  # numpy

    def private_bytes(self):
        return sum(process.private_bytes() for process in self.processes)


def guests(pid):
    """What a server keeps while nothing runs: templates, and sandboxes that wait.

    The sandboxes of a template's forks lie below the pid namespace in which the template lives."""
    try:
        everybody = {process.pid: process for process in below(pid)}
        space = {process.pid: process.pid_namespace() for process in everybody.values()}
    except PermissionError:
        raise Unavailable("only root may look into sandboxes") from None
    pythons = [process for process in everybody.values() if process.is_python()]
    outer = {
        space[above]
        for python in pythons
        for above in ancestors(everybody, python)
        if space[above] != space[python.pid]
    }
    templates, waiting = [], []
    for python in pythons:
        beside = [
            each for each in everybody.values() if space[each.pid] == space[python.pid] and not each.is_python()
        ]
        (templates if space[python.pid] in outer else waiting).append(Guest(python, beside))
    return templates, waiting


def ancestors(everybody, process):
    above = process.parent
    while above in everybody:
        yield above
        above = everybody[above].parent

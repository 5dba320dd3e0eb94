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

    A template has the interpreters that it forked below it, or beside it in its namespace; where there are none, the oldest
    with its packages is taken for it."""
    try:
        everybody = below(pid)
        spaces = {process.pid: process.pid_namespace() for process in everybody}
    except PermissionError:
        raise Unavailable("only root may look into sandboxes") from None
    pythons = [process for process in everybody if process.is_python()]
    found = []
    for python in pythons:
        others = [
            each
            for each in everybody
            if each.pid != python.pid and spaces[each.pid] == spaces[python.pid] and not each.is_python()
        ]
        found.append(Guest(python, others))
    parents = ancestors(everybody, pythons)
    templates = [guest for guest in found if guest.python.pid in parents]
    for kind in (True, False):
        alike = [guest for guest in found if guest.heavy == kind]
        if len(alike) > 1 and not any(guest in templates for guest in alike):
            templates.append(min(alike, key=lambda guest: guest.python.started))
    return templates, [guest for guest in found if guest not in templates]


def ancestors(everybody, processes):
    parent = {process.pid: process.parent for process in everybody}
    found = set()
    for process in processes:
        above = process.parent
        while above in parent:
            found.add(above)
            above = parent[above]
    return found

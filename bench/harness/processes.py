"""The processes of a running server, as /proc shows them to whoever started it."""

import os
import pathlib
import re

PYTHON = re.compile(r"/python3?(\.\d+)?$")


class Process:
    def __init__(self, pid):
        self.pid = pid
        folder = pathlib.Path(f"/proc/{pid}")
        fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        self.parent = int(fields[1])
        self.started = int(fields[19])
        self.folder = folder

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
        return sum(int(size) for size in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE)) * 1024


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


def guests(pid):
    """The interpreters below a server while nothing runs: templates, and sandboxes that wait.

    A template is the parent of what it forks; where forks have another parent, it is the oldest with its packages."""
    pythons = [process for process in below(pid) if process.is_python()]
    parents = {process.parent for process in pythons}
    templates = [process for process in pythons if process.pid in parents]
    if not templates:
        for kind in (True, False):
            alike = [process for process in pythons if heavy(process) == kind]
            if len(alike) > 1:
                templates.append(min(alike, key=lambda process: process.started))
    chosen = {process.pid for process in templates}
    return templates, [process for process in pythons if process.pid not in chosen]


def heavy(process):
    return process.maps("_multiarray_umath")

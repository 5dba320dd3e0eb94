"""What a program finds around it: standard streams, `__main__`, fresh modules of the workspace, matplotlib's fonts."""
from builtins import *  # noqa: F401,F403  (see driver.py)

import builtins
import os
import sys
from _frozen_importlib_external import (BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader,
                                        FileFinder, SourceFileLoader, SourcelessFileLoader)
from _io import FileIO, TextIOWrapper
from _thread import allocate_lock, get_ident
from time import monotonic, sleep

ModuleType = type(sys)


class Through(FileIO):
    """Standard output without a buffer: order against other writers holds, and half a line survives a kill.

    Unlike the raw file of `python -u` it writes everything it is given, and lets a thread end its line: print() writes
    text and line end apart, and other threads would come between them.
    """

    PATIENCE = 0.02  # seconds for which the unfinished line of another thread is waited for

    def __init__(self, fd):
        FileIO.__init__(self, fd, "wb", closefd=False)
        self.line, self.writer, self.since = allocate_lock(), None, 0.0

    def write(self, data):
        rest = memoryview(data).cast("B")
        size = len(rest)
        if self.writer != get_ident():
            if not self.line.acquire(False):
                self.line.acquire(True, max(self.since + self.PATIENCE - monotonic(), 0))
            self.writer = get_ident()
        self.since = monotonic()
        ends = not size or rest[-1] == 10
        while rest:
            written = FileIO.write(self, rest)
            if written is None:  # some child made the shared pipe non-blocking
                sleep(0.001)
            else:
                rest = rest[written:]
        if ends and self.writer == get_ident():
            self.writer = None
            if self.line.locked():
                self.line.release()
        return size


Through.__module__, Through.__qualname__, Through.__name__ = FileIO.__module__, FileIO.__qualname__, FileIO.__name__


def write_through(stream, fd, name):
    errors = getattr(stream, "errors", None) or ("backslashreplace" if fd == 2 else "surrogateescape")
    raw = Through(fd)
    raw.name = name
    text = TextIOWrapper(raw, "utf-8", errors, "\n", write_through=True)
    text.mode = "w"
    return text


class FreshSourceLoader(SourceFileLoader):
    """Always compiles: time stamps do not tell apart two versions written within a second."""

    def path_stats(self, path):
        raise OSError("bytecode is neither read nor written")


FreshSourceLoader.__module__, FreshSourceLoader.__qualname__ = SourceFileLoader.__module__, SourceFileLoader.__qualname__
FreshSourceLoader.__name__ = SourceFileLoader.__name__


def distrust_bytecode(workspace):
    inside = workspace.rstrip("/") + "/"
    finder = FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (FreshSourceLoader, SOURCE_SUFFIXES),
                                  (SourcelessFileLoader, BYTECODE_SUFFIXES))

    def fresh_finder(path):
        if not (path + "/").startswith(inside):
            raise ImportError("not in the workspace")
        return finder(path)

    sys.path_hooks.insert(0, fresh_finder)
    sys.path_importer_cache.pop(workspace, None)
    return fresh_finder


def link_font_cache():
    """matplotlib reads the fonts' list of the layer; without it, it searches the machine's fonts on first use."""
    prepared = os.path.join(sys.prefix, "share", "prims", "matplotlib")
    try:
        names = os.listdir(prepared)
        cache = os.path.join(os.environ["HOME"], ".cache", "matplotlib")
        os.makedirs(cache, exist_ok=True)
        for name in names:
            os.symlink(os.path.join(prepared, name), os.path.join(cache, name))
    except (OSError, KeyError):
        pass


def make_main(path):
    """The module `__main__` as a script finds it, without a trace of this one."""
    main = ModuleType("__main__")
    main.__file__ = path
    main.__cached__ = None
    main.__builtins__ = builtins
    main.__loader__ = SourceFileLoader("__main__", path)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main

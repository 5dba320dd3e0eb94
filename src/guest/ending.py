"""Ends a fork without taking the interpreter apart.

An interpreter that ends goes through every module, type and interned string it has. In a fork nearly all of those are shared
with the template, and to touch them is to copy them: it costs more than most programs do. So the last exit handler does
what a program can see of an ending, in the interpreter's own order, and leaves. Threads were waited for and the program's
exit handlers have run by then. Whatever might want more than that, ends as everywhere. What a program hung into a library's
own modules is left as it is; Python promises no finalizer at the end.
"""
from builtins import *  # noqa: F401,F403  (see driver.py)

import atexit
import builtins
import gc
import sys
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader
from _thread import _count as other_threads
from _weakref import ref
from posix import _exit

# In the order and by the names of the interpreter's finalize_modules().
FORGOTTEN = ("path", "argv", "ps1", "ps2", "last_exc", "last_type", "last_value", "last_traceback", "path_hooks",
             "path_importer_cache", "meta_path", "__interactivehook__")


def without_frame(text):
    """A function that what it sets free takes for no Python code, as when the interpreter does it: warnings name no file."""
    filename, line = ("<sys>", 0) if sys.version_info >= (3, 13) else ("sys", 1)
    made = eval(compile("lambda " + text, filename, "eval"), {"__name__": "sys", "collect_": gc.collect})
    made.__code__ = made.__code__.replace(co_firstlineno=line)
    return made


collect = without_frame(": collect_()")
forget = without_frame("namespace, name: namespace.__setitem__(name, None)")


def status_of(code):
    """The exit status that a SystemExit with this code leads to; the interpreter has the last word on its message."""
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if -1 << 63 <= code < 1 << 63 else 0xFF


def flush_streams():
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()


# Nothing happens when such an object goes, and it holds none of another kind.
UNEVENTFUL = {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, type(len), SourceFileLoader}


def leaves_nothing(namespace):
    """Whether nobody can tell that it is not taken apart."""
    for value in namespace.values():
        kind = type(value)
        if kind not in UNEVENTFUL and value is not builtins and (kind is not dict or value):
            return False
    return True


def empty(namespace):
    """As the interpreter does it: private names first, since others may lean on them."""
    for private in (True, False):
        for name in list(namespace):
            if isinstance(name, str) and name != "__builtins__" and private == (name[:1] == "_" and name[:2] != "__"):
                forget(namespace, name)


class Ending:
    """Its `end` is an exit handler that was registered before all others. `status` is set when the program's code ends."""

    def __init__(self, shared):
        self.shared, self.status = shared | {"sys", "builtins"}, None
        self.begun = None  # the names of modules in a fork that has run nothing
        self.handlers = None  # how many exit handlers there are in a fork that has run nothing
        self.loaded = False  # a library, by ctypes: its own exit handlers are known to the C library
        # Not freed when the interpreter's own references to them go.
        self.kept = self, [getattr(sys, name, None) for name in FORGOTTEN]

    def watch_loading(self, ctypes):
        load = ctypes._dlopen

        def dlopen(*arguments):
            self.loaded = True
            return load(*arguments)

        ctypes._dlopen = dlopen

    def own_names(self):
        if sys.modules.keys() == self.begun:
            return ["__main__"]
        return [name for name in sys.modules if name not in self.shared]

    def is_plain(self):
        """Whether nothing runs or was loaded whose ending only the interpreter and the C library know."""
        if self.status is None or self.loaded or other_threads() or "_cffi_backend" in sys.modules:
            return False
        return not [name for name in self.own_names()
                    if isinstance(getattr(sys.modules[name], "__loader__", None), ExtensionFileLoader)]

    def rehearse(self):
        """In a fork that has run nothing."""
        self.begun = frozenset(sys.modules)
        self.is_plain()
        leaves_nothing(sys.modules["__main__"].__dict__)
        flush_streams()
        collect()

    def leave(self):
        """The rest of the process, at once where no other exit handler and no thread comes first."""
        if atexit._ncallbacks() == self.handlers and "threading" not in sys.modules:
            self.end()

    def end(self):
        if not self.is_plain():
            return self.part_from_modules()
        try:
            flush_streams()
        except BaseException:  # the interpreter comes to the same, and tells it
            return self.part_from_modules()
        collect()
        if sys.modules.keys() != self.begun or not leaves_nothing(sys.modules["__main__"].__dict__):
            self.take_apart()
        status = self.status
        try:
            flush_streams()
        except BaseException:
            status = 120  # as the interpreter says that the last of the output was lost
        _exit(status)

    def take_apart(self):
        atexit._clear()
        for name in FORGOTTEN:
            if hasattr(sys, name):
                setattr(sys, name, None)
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, name, getattr(sys, "__%s__" % name, None))
        left = self.drop_own_modules()
        collect()
        for reference in reversed(left):
            module = reference()
            if module is not None:
                empty(module.__dict__)
                del module

    def drop_own_modules(self):
        left = []
        for name in self.own_names():
            try:
                left.append(ref(sys.modules[name]))
            except TypeError:
                pass
            forget(sys.modules, name)
        return left

    def part_from_modules(self):
        """The interpreter takes apart what it finds in sys.modules: not what the process only shares."""
        for name in self.shared.intersection(sys.modules) - {"sys", "builtins"}:
            del sys.modules[name]

"""Imports modules ahead of the programs that may want them, and notes what each import did besides.

What is noted makes it possible to hide the modules again and to hand them out one by one (standby.py): which modules the
body of each module imported, and what it left behind elsewhere: warning filters, import hooks, environment variables,
exit handlers, warnings that it showed.
"""
from builtins import *  # noqa: F401,F403  (see driver.py)

import atexit
import builtins
import os
import sys
import warnings
from _frozen_importlib import ModuleSpec
from _locale import LC_ALL, setlocale
from _signal import getsignal, valid_signals
from resource_use import resident, threads

# Frames of this name are passed over where warnings look for the code that imports, as those of importlib are.
UNSEEN = "<frozen importlib._bootstrap>"
IMPORTER = "<program>"


def unseen(function):
    function.__code__ = function.__code__.replace(co_filename=UNSEEN)
    return function


def is_unseen(filename):
    return "importlib" in filename and "_bootstrap" in filename


class Watched:
    """A loader that tells the recorder which module's body is running."""

    def __init__(self, recorder, loader):
        self.recorder, self.loader = recorder, loader

    @unseen
    def create_module(self, spec):  # modules in C may run their body here
        with Window(self.recorder, spec.name):
            return self.loader.create_module(spec)

    @unseen
    def exec_module(self, module):
        module.__spec__.loader = self.loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self.loader
        with Window(self.recorder, module.__spec__.name):
            self.loader.exec_module(module)


class BroughtBack:
    """The loader of a module that was imported before and hidden since."""

    def __init__(self, recorder, module):
        self.recorder, self.module, self.spec = recorder, module, getattr(module, "__spec__", None)

    def create_module(self, spec):
        return self.module

    @unseen
    def exec_module(self, module):
        self.recorder.bring_back(module.__spec__.name)
        module.__spec__ = self.spec


class Window:
    """The time in which a module's body runs. What happens in it is the module's, unless a window within has it."""

    def __init__(self, recorder, name):
        self.recorder, self.name = recorder, name

    def __enter__(self):
        self.recorder.settle()
        self.recorder.note(self.name)
        self.recorder.running.append(self.name)
        self.recorder.known.add(self.name)

    def __exit__(self, *error):
        self.recorder.settle()
        self.recorder.running.pop()


def in_order(name, needs):
    """What importing this module brings, itself last and each after what it needs."""
    order, seen, open_ = [], {name}, [(name, iter(needs.get(name, ())))]
    while open_:
        for need in open_[-1][1]:
            if need not in seen:
                seen.add(need)
                open_.append((need, iter(needs.get(need, ()))))
                break
        else:
            order.append(open_.pop()[0])
    return order


def let_go(modules, needs, begun):
    """A package has a module as its attribute only once somebody imported that: takes away what else would be there.

    Returns {name of module: its package}.
    """
    packages, brought = {}, {}
    for name, module in modules.items():
        package, _, attribute = name.rpartition(".")
        parent = modules.get(package, begun.get(package)) if package else None
        if parent is None or getattr(parent, "__dict__", {}).get(attribute) is not module:
            continue
        if package not in brought:
            brought[package] = set(in_order(package, needs)) if package in modules else ()
        if name not in brought[package]:
            delattr(parent, attribute)
            packages[name] = parent
    return packages


def attach(name, module, packages):
    if name in packages:
        setattr(packages[name], name.rpartition(".")[2], module)


def tell_filters():
    """The filters are a list that others keep results of."""
    getattr(warnings, "_filters_mutated", getattr(warnings, "_filters_mutated_lock_held", int))()


def put_first(items, item):
    if item in items:
        items.remove(item)
    items.insert(0, item)


def put_last(items, item):
    if item not in items:
        items.append(item)


def put_filter(put, item):
    put(warnings.filters, item)
    tell_filters()


def set_variable(key, value):
    if value is None:
        os.environ._data.pop(key, None)
        os.unsetenv(key)
    else:
        os.environ._data[key] = value
        os.putenv(key, value)


def put_hook(put, item, name):
    put(getattr(sys, name), item)


def join_forks(register, handlers):
    """Calls what a fork is to call, late: this process was forked while the module was hidden."""
    register(**handlers)
    handlers.get("after_in_child", int)()


def show_again(importer, message, category, filename, lineno):
    """Shows a warning where plain Python would have, should it still want to. `importer`: the library that wants the module."""
    module, registry = None, {}
    if filename == IMPORTER and importer is not None:
        filename, lineno, module = getattr(importer, "__file__", "<unknown>"), 1, importer.__name__
    elif filename == IMPORTER:
        frame = sys._getframe(1)
        while frame.f_back is not None and is_unseen(frame.f_code.co_filename):
            frame = frame.f_back
        filename, lineno, module = frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
        registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, filename, lineno, module, registry)


class Recorder:
    """Imports, and knows afterwards for each module what it `needs` and its `effects`.

    An effect is (function, arguments); when it is repeated, show_again() gets the importing module as well.
    """

    def __init__(self):
        self.needs, self.effects = {"": {}}, {}
        self.running = [""]  # modules whose body runs, innermost last; "" is whoever called
        self.begun, self.hidden, self.packages = dict(sys.modules), {}, {}
        self.known = set(sys.modules)
        self.before = self.seen = self.surface()
        self.recorded = {}  # id of a filter or hook: the effect that repeats it
        self.real = self.put_in_place(builtins.__import__, atexit.register, os.register_at_fork, warnings._showwarnmsg_impl)

    def __enter__(self):
        sys.meta_path.insert(0, self)
        self.put_in_place(self.import_, self.register, self.register_at_fork, self.show)
        return self

    def __exit__(self, *error):
        self.put_in_place(*self.real)
        self.settle()
        self.reveal()
        warnings.filters[:], sys.meta_path[:], sys.path_hooks[:] = self.before[:3]
        tell_filters()
        for key in os.environ._data.keys() | self.before[3].keys():
            set_variable(key, self.before[3].get(key))

    @staticmethod
    def put_in_place(*functions):
        builtins.__import__, atexit.register, os.register_at_fork, warnings._showwarnmsg_impl = functions
        return functions

    def surface(self):
        return (tuple(warnings.filters), tuple([f for f in sys.meta_path if f is not self]), tuple(sys.path_hooks),
                dict(os.environ._data))

    def note(self, name):
        self.needs[self.running[-1]][name] = None
        self.needs.setdefault(name, {})

    def add(self, function, *arguments):
        effect = function, arguments
        self.effects.setdefault(self.running[-1], []).append(effect)
        return effect

    def settle(self):
        """Puts down what happened since the last time to the module whose body runs."""
        for name in sys.modules.keys() - self.known:
            self.note(name)
            self.known.add(name)
        now = self.surface()
        if now == self.seen:
            return
        before, self.seen = self.seen, now
        self.settle_items(before[0], now[0], put_filter)
        self.settle_items(before[1], now[1], put_hook, "meta_path")
        self.settle_items(before[2], now[2], put_hook, "path_hooks")
        for key in now[3].keys() | before[3].keys():
            if before[3].get(key) != now[3].get(key):
                self.add(set_variable, key, now[3].get(key))

    def settle_items(self, before, now, repeat, *more):
        old, new = {id(item) for item in before}, {id(item) for item in now}
        for item in before:  # as those are that hold for one block only
            if id(item) not in new and id(item) in self.recorded:
                name, effect = self.recorded.pop(id(item))
                self.effects[name].remove(effect)
        first = [index for index, item in enumerate(now) if id(item) in old][:1]
        split = first[0] if first else 0
        for put, items in ((put_first, now[:split][::-1]), (put_last, now[split:])):
            for item in items:
                if id(item) not in old:
                    self.recorded[id(item)] = self.running[-1], self.add(repeat, put, item, *more)

    def hide(self):
        """Hides what was imported so far, so that the next import asks for it: that of a module in C is seen only here."""
        seen = {name: sys.modules.pop(name) for name in sys.modules.keys() - self.begun.keys()}
        self.hidden.update(seen)
        self.packages.update(let_go(seen, self.needs, self.begun))

    def reveal(self):
        sys.modules.update(self.hidden)
        for name, module in self.hidden.items():
            attach(name, module, self.packages)

    def bring_back(self, name):
        self.note(name)
        for each in in_order(name, self.needs):
            if each in self.hidden:
                attach(each, sys.modules.setdefault(each, self.hidden[each]), self.packages)

    def find_spec(self, name, path=None, target=None):
        if name in self.hidden:
            return ModuleSpec(name, BroughtBack(self, self.hidden[name]))
        for finder in sys.meta_path[:]:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = Watched(self, spec.loader)
                    return spec
        return None

    @unseen
    def import_(self, name, globals=None, locals=None, fromlist=(), level=0):
        """The import statement. Modules that are there already are seen only here."""
        module = self.real[0](name, globals, locals, fromlist, level)
        full = name
        if level and globals:
            package = globals.get("__package__") or globals["__name__"].rpartition(".")[0]
            full = ".".join(package.split(".")[:len(package.split(".")) - level + 1] + ([name] if name else []))
        parts = full.split(".")
        for end in range(1, len(parts) + 1):
            self.note(".".join(parts[:end]))
        if fromlist:
            for item in getattr(module, "__all__", ()) if "*" in fromlist else fromlist:
                if isinstance(item, str) and full + "." + item in sys.modules:
                    self.note(full + "." + item)
        return module

    def register(self, function, *arguments, **named):
        if builtins.__import__ != self.import_:  # kept by a module that has it by name
            return self.real[1](function, *arguments, **named)
        self.add(lambda: self.real[1](function, *arguments, **named))
        return function

    def register_at_fork(self, **handlers):
        if builtins.__import__ != self.import_:
            return self.real[2](**handlers)
        self.add(join_forks, self.real[2], handlers)

    def show(self, message):
        self.add(show_again, message.message, message.category, message.filename, message.lineno)


def unusual():
    """What an import may not change, since nothing repeats it later. Libraries made with pybind11 keep what they share among the
    builtins, under a name of their own: that stays."""
    return ([getsignal(number) for number in sorted(valid_signals())], setlocale(LC_ALL), os.getcwd(), sys.path[:],
            sys.excepthook, sys.displayhook, getattr(sys, "unraisablehook", None), sys.gettrace(), sys.getprofile(),
            sys.getrecursionlimit(), sys.getswitchinterval(), sys.stdin, sys.stdout, sys.stderr,
            sorted([name for name in vars(builtins) if not name.startswith("__pybind11")]))


class Unfit(Exception):
    """This module is better left to the programs: it failed, or did what cannot be undone and repeated."""

    def __init__(self, name):
        Exception.__init__(self, name)
        self.name = name


def unnamed_file():
    """Of the sandbox's own /tmp: memory that no mapping shows is refused where nothing counts it."""
    return os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)


class Silence:
    """Keeps what imports write from the standard streams, and knows whether they wrote."""

    def __enter__(self):
        self.kept = os.dup(1), os.dup(2)
        self.file = unnamed_file()
        os.dup2(self.file, 1)
        os.dup2(self.file, 2)
        return self

    def broken(self):
        return os.fstat(self.file).st_size > 0

    def __exit__(self, *error):
        os.dup2(self.kept[0], 1)
        os.dup2(self.kept[1], 2)
        for fd in self.kept + (self.file,):
            os.close(fd)


def end_threads():
    """Libraries of linear algebra end theirs around a fork, and start them again when they have work."""
    if threads() > 1:
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    return threads() == 1


def import_one(name, silence):
    before = unusual()
    try:
        exec(compile("import " + name, IMPORTER, "exec"), {"__name__": "__main__"})
    except ModuleNotFoundError as error:
        if error.name != name:
            raise Unfit(name) from None
        return
    except BaseException:
        raise Unfit(name) from None
    if silence.broken() or unusual() != before or not end_threads():
        raise Unfit(name)


def import_ahead(names, without, memory):
    """Imports what there is of the names, in order, until the process has grown to so many bytes. Returns a Recorder."""
    with Silence() as silence, Recorder() as recorder:
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                part = ".".join(parts[:end])
                if part in without or resident() >= memory:
                    break
                import_one(part, silence)
                recorder.settle()
                recorder.hide()
    return recorder

"""Hands out modules that were imported ahead, as if each import had just run.

A program must not see what was imported for others: `sys.modules` starts as that of a plain interpreter, a file of the
workspace goes before a library of the same name, and what an import leaves behind elsewhere appears with the import. So
modules that were imported ahead wait outside of `sys.modules` in a finder. When a program imports one, the finder looks
where the path leads; if that is the module that waits, it and everything its import would have brought come back.

They cannot simply be imported anew: a library in C starts once in a process, and those who imported it hold the first one.
"""
from builtins import *  # noqa: F401,F403  (see driver.py)

import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

from preload import attach, in_order, let_go, show_again, unseen


def home_of(spec):
    """The entry of sys.path that the module was found in."""
    directory, _, file = spec.origin.rpartition("/")
    return directory.rpartition("/")[0] if file.startswith("__init__.") else directory


def is_driver(module):
    return (getattr(module, "__file__", None) or "").rpartition("/")[0] == __file__.rpartition("/")[0]


def side_by_side(names):
    """The same names as new objects, which follow each other in memory."""
    copies = [name.encode().decode() for name in names]
    return [name for name in copies if hash(name)]


class HandOut:
    """A loader whose module is there already; all else is answered by the loader that once loaded it."""

    def __init__(self, standby, module, spec):
        self.standby, self.module, self.spec = standby, module, spec

    def __getattr__(self, name):
        return getattr(self.spec.loader, name)

    def create_module(self, spec):
        return self.module

    @unseen
    def exec_module(self, module):
        module.__spec__ = self.spec
        self.standby.hand_out(self.spec.name)


class Standby:
    """The finder. `waiting` are the modules by name; each is handed out once, so that a reload is a reload.

    What is made before the fork is only read after it, and as few objects as can be: a reference to one is a page to copy.
    """

    def __init__(self, needs, effects, begun, roots, fresh):
        """From now on sys.modules is `begun`. `roots` are what is likely to be imported; `fresh` has calls for what goes out."""
        self.waiting = {name: module for name, module in sys.modules.items()
                        if name not in begun and not is_driver(module) and module is not sys.modules["__main__"]}
        for name in sys.modules.keys() - begun.keys():
            sys.modules.pop(name, None)
        # A circle, so that nothing is taken apart at the end of a fork only because the last to know of it has gone.
        self.kept = self, tuple(self.waiting.values()), tuple(begun.values())
        self.needs = {name: tuple([need for need in found if need in self.waiting and need != name])
                      for name, found in needs.items() if name in self.waiting}
        for name in self.waiting:
            parent = name.rpartition(".")[0]
            if parent in self.waiting:
                self.needs[name] = (parent,) + self.needs.get(name, ())
        self.effects = {name: effects[name] for name in self.waiting if name in effects}
        self.fresh = fresh
        self.packages = let_go(self.waiting, self.needs, begun)
        self.homes = {}
        for name, module in self.waiting.items():
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.has_location and "." not in name:
                self.homes[name] = home_of(spec)
        self.shadowable = frozenset(self.homes)
        self.out = set()
        self.orders = {name: side_by_side(in_order(name, self.needs)) for name in roots if name in self.waiting}

    def find_spec(self, name, path=None, target=None):
        if name in self.out or name not in self.waiting:
            return None
        module = self.waiting[name]
        spec = getattr(module, "__spec__", None)
        if spec is None or spec.name != name or not self.is_met(name, spec):
            return None
        loader = HandOut(self, module, spec)
        found = ModuleSpec(name, loader, origin=spec.origin, loader_state=spec.loader_state)
        found.submodule_search_locations = spec.submodule_search_locations
        found.cached, found.has_location = spec.cached, spec.has_location
        return found

    def is_met(self, name, spec):
        """Whether the interpreter would come to this module when it followed the path now."""
        if spec.origin in ("built-in", "frozen"):
            return True
        if "." in name:  # its package is imported by now, and nobody changes the files of a library
            package = name.rpartition(".")[0]
            return package in self.out or package not in self.waiting
        if name not in self.homes:  # a package in several places
            found = PathFinder.find_spec(name)
            return found is not None and found.origin is None
        for entry in sys.path:
            if entry == self.homes[name]:
                return True
            if not shadows(entry, (name,)):
                continue
            return False
        return False

    def shadowed(self, directory, entries):
        """Whether a program in this directory would find files of its own where libraries are meant."""
        names = {entry.partition(".")[0] for entry in entries} & self.shadowable
        return bool(names) and shadows(directory, names)

    @unseen
    def hand_out(self, name):
        brought = self.orders.get(name) or in_order(name, self.needs)
        modules, waiting, out, going = sys.modules, self.waiting, self.out, []
        for each in brought:
            if each in out:
                continue
            out.add(each)
            module = waiting[each]
            there = modules.setdefault(each, module)
            if there is None:
                raise ModuleNotFoundError("import of %s halted; None in sys.modules" % each, name=each)
            if each in self.packages:
                attach(each, module, self.packages)
            if there is module and (each in self.effects or each in self.fresh):
                going.append((each, module))
        for each, module in going:
            for function, arguments in self.effects.get(each, ()):
                if function is show_again:
                    arguments = (self.importer_of(each, brought),) + arguments
                function(*arguments)
            if each in self.fresh:
                self.fresh[each](module)

    def importer_of(self, name, brought):
        """The library among them that wants this module; None for what the program itself asked for."""
        found = [each for each in brought if name in self.needs.get(each, ())] if name != brought[-1] else []
        return sys.modules.get(found[0]) if found else None


def shadows(entry, names):
    finder = PathFinder._path_importer_cache(entry) if isinstance(entry, str) else None
    for name in names if finder is not None else ():
        spec = finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return True
    return False

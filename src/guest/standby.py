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

from preload import unseen


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


def home_of(name, spec):
    """The entry of sys.path that the module was found in."""
    path = spec.origin if spec.submodule_search_locations is None else spec.submodule_search_locations[0]
    return path.rpartition("/")[0]


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
    """The finder. `waiting` are the modules by name; each is handed out once, so that a reload is a reload."""

    def __init__(self, needs, effects, begun, own, fresh):
        """From now on sys.modules is `begun`; `own` are nobody's business; `fresh` is called with modules that go out."""
        self.waiting = {name: module for name, module in sys.modules.items() if name not in begun and name not in own}
        for name in self.waiting.keys() | own:
            sys.modules.pop(name, None)
        self.needs = {name: tuple([need for need in found if need in self.waiting and need != name])
                      for name, found in needs.items() if name in self.waiting}
        for name in self.waiting:
            parent = name.rpartition(".")[0]
            if parent in self.waiting:
                self.needs[name] = (parent,) + self.needs.get(name, ())
        self.effects = {name: effects[name] for name in self.waiting if name in effects}
        self.fresh = fresh
        self.parents = self.let_go_of_parents(begun)
        self.homes = {}
        for name, module in self.waiting.items():
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.has_location and "." not in name:
                self.homes[name] = home_of(name, spec)

    def let_go_of_parents(self, begun):
        """A package has a module as its attribute only when somebody imported that. Returns {module: its parent}."""
        parents, brought = {}, {}
        for name, module in self.waiting.items():
            package, _, attribute = name.rpartition(".")
            parent = self.waiting.get(package, begun.get(package)) if package else None
            if getattr(parent, "__dict__", {}).get(attribute) is not module or parent is None:
                continue
            if package not in brought:
                brought[package] = set(in_order(package, self.needs)) if package in self.waiting else ()
            if name not in brought[package]:
                delattr(parent, attribute)
                parents[name] = parent
        return parents

    def find_spec(self, name, path=None, target=None):
        module = self.waiting.get(name)
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
        if "." in name:  # the package is the one it belongs to, and nobody changes the files of a library
            return name.rpartition(".")[0] not in self.waiting
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
        names = {entry.partition(".")[0] for entry in entries}.intersection(self.homes)
        return bool(names) and shadows(directory, names)

    def hand_out(self, name):
        brought = in_order(name, self.needs)
        going = []
        for each in brought:
            module = self.waiting.pop(each, None)
            if module is None:
                continue
            there = sys.modules.setdefault(each, module)
            if there is None:
                raise ModuleNotFoundError("import of %s halted; None in sys.modules" % each, name=each)
            if each in self.parents:
                setattr(self.parents[each], each.rpartition(".")[2], module)
            if there is module:
                going.append((each, module))
        for each, module in going:
            for function, arguments in self.effects.pop(each, ()):
                function(*arguments)
            if each in self.fresh:
                self.fresh[each](module)


def shadows(entry, names):
    finder = PathFinder._path_importer_cache(entry) if isinstance(entry, str) else None
    for name in names if finder is not None else ():
        spec = finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return True
    return False

"""Template mode: an interpreter that is warmed up once and forked for each program.

The template imports what programs often want (preload.py), hides it again (standby.py), runs a small program of its own so
that the first compilation, the first print and their like lie behind it, and waits in the native module `forking` until it
is forked. What two forks may not share is made fresh: random streams, identities, and what modules remember of the
process that imported them.
"""
from builtins import *  # noqa: F401,F403  (see driver.py)

import atexit
import gc
import os
import sys
import forking
from _io import open as io_open, TextIOWrapper

from channel import from_json, to_json
from ending import Ending, status_of  # noqa: F401
from preload import Unfit, import_ahead, unnamed_file
from resource_use import fill_holes, threads
from standby import Standby
from surroundings import link_font_cache

DRIVER = sys.argv[0]
# What scripts reach for all the time. Hidden, they cost a template a few megabytes that all its forks share.
STANDARD = """json re math random datetime collections itertools functools typing dataclasses pathlib csv io string time
    os.path statistics decimal fractions operator copy enum shutil glob tempfile subprocess threading logging argparse
    textwrap hashlib base64 uuid secrets pickle struct bisect heapq contextlib inspect traceback warnings urllib.parse
    urllib.request html zipfile gzip sqlite3 concurrent.futures multiprocessing queue asyncio platform calendar locale
    pprint unittest abc types ast dis tokenize linecache configparser xml.etree.ElementTree ssl socket zoneinfo""".split()


def fresh_matplotlib(module):
    """matplotlib makes these when it is imported; the home directory of a fork is another."""
    for directory in (module.get_configdir, module.get_cachedir):
        os.makedirs(directory(), exist_ok=True)


def fresh_pyplot(module):
    """Releases that choose their backend on import have chosen; the program may have asked for another since."""
    if getattr(module, "_backend_mod", None) is not None:
        module.switch_backend(module.rcParams["backend"])


def fresh_process(module):
    module.ORIGINAL_DIR = os.getcwd()
    config = module.current_process()._config
    config["authkey"] = type(config["authkey"])(os.urandom(32))


def fresh_logging(module):
    module._startTime = (module.time.time_ns if isinstance(module._startTime, int) else module.time.time)()


def fresh_processes(module):
    sys.modules["__mp_main__"] = sys.modules["__main__"]


def forget(**values):
    return lambda module: [setattr(module, name, value) for name, value in values.items() if hasattr(module, name)]


# Called with a module when it is handed out. Forks of one template may have the same process id, each in a namespace of its
# own: nothing here relies on that id to tell them apart.
FRESH = {
    "random": lambda module: module.seed(),
    "numpy.random.mtrand": lambda module: module._rand.seed(),
    "tempfile": forget(_name_sequence=None, tempdir=None),
    "uuid": forget(_node=None, _last_timestamp=None),
    "logging": fresh_logging,
    "multiprocessing": fresh_processes,
    "multiprocessing.process": fresh_process,
    "threading": lambda module: module.main_thread()._set_native_id(),
    "_ssl": lambda module: module.RAND_add(os.urandom(48), 48.0),
    "matplotlib": fresh_matplotlib,
    "matplotlib.pyplot": fresh_pyplot,
}


def input_stream(old):
    """Standard input as the interpreter opens it at its start."""
    stream = TextIOWrapper(io_open(0, "rb", -1, closefd=False), old.encoding, old.errors, "\n",
                           line_buffering=os.isatty(0))
    stream.buffer.raw.name, stream.mode = "<stdin>", "r"
    return stream


class Forked:
    """What a fork has that a plainly started driver does not."""

    def __init__(self, standby, begun, place):
        self.standby, self.begun, self.place = standby, begun, place
        self.ending = Ending(standby.waiting.keys() | begun.keys() - {"__main__"})
        if "ctypes" in standby.waiting:
            self.ending.watch_loading(standby.waiting["ctypes"])

    def refresh(self):
        for name, fresh in FRESH.items():
            if name in self.begun and name in sys.modules:
                fresh(sys.modules[name])
        if sys.stdin is not None:
            sys.stdin = sys.__stdin__ = input_stream(sys.stdin)

    def serves(self, workspace):
        """Whether a program in this workspace comes out as under a plainly started driver."""
        entries = os.listdir(workspace)
        return "matplotlibrc" not in entries and not self.standby.shadowed(workspace, entries)

    def set_ahead(self, stage):
        """The stage for a call where one is expected, if a program would be served there. What the program makes is collected
        apart from what was here before it, so `__main__` is made last."""
        self.ending.rehearse()
        gc.freeze()
        try:
            return stage(*self.place) if self.place and self.serves(self.place[1]) else None
        except OSError:
            return None

    def start_over(self, channel):
        """Becomes a plainly started driver that has got its call already."""
        again = unnamed_file()
        with io_open(again, "wb", closefd=False) as file:
            file.writelines(channel.received)
        os.lseek(again, 0, os.SEEK_SET)
        for number, fd in enumerate([os.dup(fd) for fd in (channel.fd, channel.line_fd, again)], 3):
            os.dup2(fd, number)
        os.execv(sys.executable, [sys.executable, DRIVER, "call"])

    def join_in(self):
        sys.meta_path.insert(0, self.standby)


def start_without(name, settings):
    settings["without"] = settings.get("without", []) + [name]
    os.execv(sys.executable, [sys.executable, DRIVER, "template", to_json(settings)])


def await_fork(argument, begun, rehearsals):
    """Returns in a fork only, in the sandbox of its own."""
    settings = from_json(argument)
    without = settings.get("without", [])
    link_font_cache()
    try:
        recorder = import_ahead(STANDARD + settings["imports"], without, settings["memory"])
    except Unfit as unfit:
        start_without(unfit.name, settings)
    standby = Standby(recorder.needs, recorder.effects, begun, STANDARD + settings["imports"], FRESH)
    forked = Forked(standby, begun, [settings[name] for name in ("file", "workspace") if name in settings])
    atexit.register(forked.ending.end)
    forked.ending.handlers = atexit._ncallbacks()
    for each in rehearsals:
        each()
    if threads() > 1:
        raise SystemExit("threads are left in the template")
    gc.collect()
    fill_holes()
    gc.freeze()
    # What is imported ahead is touched all over when a program imports it: then one fault after the other costs more than
    # the entries that fork() copies at once.
    if not settings["imports"]:
        forking.rest()
    forking.wait(3, 4)
    forked.refresh()
    return forked

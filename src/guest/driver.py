"""Runs one Python program for the host that started this interpreter.

The host talks over one private descriptor (docs/guest-protocol.md). Three steps, so that an interpreter can be warmed up,
forked and kept waiting between them: start_up(), wait_for_call(), run_call(). The forking is template mode (template.py).

The program runs in this process and may do anything to it: wipe builtins, empty sys.modules, close descriptors, fork. So
nothing here is looked up late: builtins are copied into each module, modules are held by reference, and only modules that
every interpreter loads at start, or has built in, are used. That also keeps the start quick and sys.modules as a script
expects it.
"""
import sys

_modules_at_start = dict(sys.modules)

from builtins import *  # noqa: E402,F401,F403  own names: the program may overwrite those of the module

import _ast  # noqa: E402
import _signal  # noqa: E402
import faulthandler  # noqa: E402
from _signal import pthread_sigmask  # noqa: E402
from posix import O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY, chdir, close, getpid, stat, write  # noqa: E402
from posix import open as open_fd  # noqa: E402

from channel import HELLO, RESULT, RUN, Channel, hide, to_json  # noqa: E402
from report import Place, describe_error, describe_value, ended_well  # noqa: E402
from surroundings import distrust_bytecode, link_font_cache, make_main, write_through  # noqa: E402

CHANNEL_FD, LINE_FD = 3, 4
CALL_FD = 5  # holds the call of a driver that takes the place of a fork
# The host asks with this signal for the line that is running; see docs/guest-protocol.md.
LINE_SIGNAL = _signal.SIGRTMAX - 2

CO_COROUTINE = 0x80
CO_FUTURE_MASK = 0x1FE0000
default_hook = sys.__excepthook__


def compile_program(source, path):
    """Code objects to run in order; the value of the last is the value of the program.

    Top-level await is allowed throughout: it changes nothing in a program that has none.
    """
    flags = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(source, path, "exec", flags | _ast.PyCF_ONLY_AST, True)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, _ast.Expr):
            return [compile(tree, path, "exec", flags, True)]
        docstring = len(tree.body) == 1 and isinstance(last.value, _ast.Constant) and isinstance(last.value.value, str)
        if not docstring:
            tree.body.pop()
        body = compile(tree, path, "exec", flags, True)
        future = body.co_flags & CO_FUTURE_MASK
        return [body, compile(_ast.Expression(last.value), path, "eval", flags | future, True)]
    except RecursionError:  # nested too deeply for a tree of objects; the compiler itself goes deeper
        return [compile(source, path, "exec", flags, True)]
    except ValueError as error:  # null bytes, before 3.12
        raise SyntaxError(str(error)) from None


def execute(codes, namespace):
    value = None
    for code in codes:
        value = eval(code, namespace)
    return value


async def execute_awaiting(codes, namespace):
    value = None
    for code in codes:
        value = eval(code, namespace)
        if code.co_flags & CO_COROUTINE:
            value = await value
    return value


def program_runner(codes):
    """What runs the program's code. asyncio is only loaded for a program that awaits, before the workspace is on the path."""
    if not any([code.co_flags & CO_COROUTINE for code in codes]):
        return execute
    from asyncio import run
    return lambda codes, namespace: run(execute_awaiting(codes, namespace))


def from_first_frame_of(codes, trace):
    """The traceback without the frames that lead to the program: ours, and those of asyncio."""
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace


def show_uncaught(error):
    """Prints as the interpreter does: through sys.excepthook, whatever the program made of it."""
    trace = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        getattr(sys, "excepthook", default_hook)(type(error), error, trace)
    except SystemExit:
        raise
    except BaseException as second:
        second.__traceback__ = second.__traceback__.tb_next
        second.__context__ = None
        print("Error in sys.excepthook:", file=sys.stderr)
        default_hook(type(second), second, second.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        default_hook(type(error), error, trace)


def start_up():
    """Everything that no call has a say in. After this the process may wait for as long as it likes."""
    channel = Channel(hide(CHANNEL_FD))
    try:
        channel.line_fd = hide(LINE_FD)
        faulthandler.register(LINE_SIGNAL, channel.line_fd, all_threads=False)
    except OSError:
        pass
    sys.stdout = sys.__stdout__ = write_through(sys.stdout, 1, "<stdout>")
    sys.stderr = sys.__stderr__ = write_through(sys.stderr, 2, "<stderr>")
    return channel


def warm_up():
    """For a process that is no fork of a warm one, and where modules come in on the way."""
    compile_program(b"0", "main.py")  # the first compilation in a process is the slow one
    for name in set(sys.modules) - _modules_at_start.keys():
        del sys.modules[name]


REHEARSAL = b"""
import sys
names = {'a': [1, 2.5], 'b': 'two'}
for name in sorted(names):
    print(name, names[name], '%d %s' % (len(names), name))
(names, sys.maxsize)
"""


def rehearse_failing():
    place = Place("main.py", "/", REHEARSAL)
    try:
        eval(compile_program(b"x = 1\nx / 0", "main.py")[0], {})
    except ZeroDivisionError as error:
        to_json(describe_error(error, place))


def wait_for_call(channel):
    channel.send(HELLO, {"python": "%d.%d.%d" % sys.version_info[:3]})
    return take_call(channel, channel.fd)


def take_call(channel, source):
    frame = channel.receive(source)
    if frame is None:
        raise SystemExit(0)
    if frame[0] != RUN:
        channel.refuse(frame[1], "this guest waits for a run, not for a frame of type %d" % frame[0])
    return frame[1:]


def identity(directory):
    """Tells a directory from another one that is mounted over it, or that was used meanwhile."""
    try:
        seen = stat(directory)
        return seen.st_dev, seen.st_ino, seen.st_ctime_ns
    except OSError:
        return None


class Stage:
    """What makes the process look like `python main.py` in the workspace, but for the program itself."""

    def __init__(self, path, workspace):
        self.path, self.workspace, self.seen = path, workspace, identity(workspace)
        chdir(workspace)
        link_font_cache()
        self.hook = distrust_bytecode(workspace)
        self.file = open_fd(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        self.namespace = make_main(path).__dict__

    def is_for(self, path, workspace):
        return path == self.path and workspace == self.workspace and self.seen == identity(workspace) is not None

    def strike(self):
        """For another one to take its place."""
        close(self.file)
        sys.path_hooks.remove(self.hook)

    def bring(self, source, arguments):
        while source:
            source = source[write(self.file, source):]
        close(self.file)
        sys.argv[:] = [self.path] + arguments
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = [sys.executable] + sys.argv
        return self.namespace


class Answer:
    """The one result of a call. A forked child that falls off the end comes by here too, and stays silent."""

    def __init__(self, channel, ident):
        self.channel, self.ident, self.pid, self.fields, self.sent = channel, ident, getpid(), {}, False

    def give(self, name, describe, *subject):
        if getpid() == self.pid:
            self.fields[name] = describe(*subject)

    def send(self):
        if self.sent or getpid() != self.pid:
            return
        # The program's signal handlers run between any two steps and may raise: not here.
        mask = pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            self.sent = True
            self.channel.send(RESULT, self.fields, self.ident)
            self.channel.close()
        finally:
            pthread_sigmask(_signal.SIG_SETMASK, mask)


def rehearse():
    """Goes the way of a call with a harmless program: its first steps in a process, and in a fork, are the slow ones."""
    out, nowhere = sys.stdout, open_fd("/dev/null", O_WRONLY | O_CLOEXEC)
    sys.stdout = write_through(out, nowhere, "<stdout>")
    try:
        answer, place = Answer(Channel(nowhere), 0), Place("main.py", "/", REHEARSAL)
        codes = compile_program(REHEARSAL, place.main)
        value = program_runner(codes)(codes, make_main("main.py").__dict__)
        answer.give("value", describe_value, value)
        answer.send()
    finally:
        sys.stdout = out


def run_call(channel, call, stage=None):
    """`stage` may have been set before the call came."""
    ident, fields, source = call
    path, workspace = fields["file"], fields["workspace"]
    namespace = (stage or Stage(path, workspace)).bring(source, fields["arguments"])
    place = Place(path, workspace, source)
    answer = Answer(channel, ident)
    codes = []
    try:
        codes = compile_program(source, path)
        run = program_runner(codes)
        sys.path_importer_cache.pop(sys.path[0], None)
        sys.path[0] = workspace
        value = run(codes, namespace)
        if value is not None:
            answer.give("value", describe_value, value)
        answer.send()
    except BaseException as error:
        error.__traceback__ = from_first_frame_of(codes, error.__traceback__)
        if not ended_well(error):
            answer.give("error", describe_error, error, place)
        answer.send()
        if isinstance(error, SystemExit):
            raise  # the interpreter knows best what each code means
        show_uncaught(error)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1) from None


def run_forked(argument):
    from template import await_fork, status_of
    forked = await_fork(argument, _modules_at_start, (rehearse, rehearse_failing))
    channel = start_up()
    rehearse()
    stage = forked.set_ahead(Stage)
    call = wait_for_call(channel)
    path, workspace = call[1]["file"], call[1]["workspace"]
    if stage is None or not stage.is_for(path, workspace):
        if not forked.serves(workspace):
            forked.start_over(channel)
        if stage is not None:
            stage = stage.strike()
    forked.join_in()
    code = None
    try:
        run_call(channel, call, stage)
    except SystemExit as end:
        code = end.code
    del stage
    forked.ending.status = status_of(code)
    if code is None or isinstance(code, int) and -1 << 31 <= code < 1 << 31:
        forked.ending.leave()
    raise SystemExit(code)  # the interpreter prints it, or goes the long way to the end


def main():
    mode = sys.argv[1:2]
    if mode == ["template"]:
        run_forked(sys.argv[2])
        return
    channel = start_up()
    warm_up()
    run_call(channel, take_call(channel, CALL_FD) if mode == ["call"] else wait_for_call(channel))


main()

"""Tells what a program came to: its error in terms of the user's own files, and the value of its last expression."""
from builtins import *  # noqa: F401,F403  (see driver.py)

MAX_TEXT = 64 << 10  # characters of a value or a traceback
MAX_MESSAGE = 16 << 10
MAX_FRAMES = 20
MAX_CHAIN = 12


def split_lines(source):
    return source.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


class Place:
    """Which files are the user's, and what they are called in a result."""

    def __init__(self, main, workspace, source):
        self.main, self.workspace = main, workspace.rstrip("/") + "/"
        self.lines = {main: split_lines(source)}

    def name(self, filename):
        if filename == self.main:
            return "main.py"
        if filename.startswith(self.workspace):
            return filename[len(self.workspace):]
        return None

    def line(self, filename, number):
        try:
            if filename not in self.lines:
                with open(filename, "rb") as file:
                    self.lines[filename] = split_lines(file.read(1 << 20))
            return self.lines[filename][number - 1].decode("utf-8", "replace").strip() if number > 0 else ""
        except (OSError, IndexError):
            return ""


def clipped(text, limit=MAX_TEXT):
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n[... %d characters left out ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def type_name(kind):
    name, module = kind.__qualname__, kind.__module__
    return name if module in ("builtins", "__main__") or not isinstance(module, str) else module + "." + name


def message_of(error):
    try:
        return clipped(str(error), MAX_MESSAGE)
    except BaseException:
        return "<exception str() failed>"


def user_frames(trace, place):
    """[(file name, line, function)], outermost first, with the middle left out when there are very many."""
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if place.name(code.co_filename) is not None:
            frames.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    return frames


def shortened(frames):
    if len(frames) <= MAX_FRAMES:
        return frames, None
    return frames[:MAX_FRAMES // 2] + frames[-MAX_FRAMES // 2:], MAX_FRAMES // 2


def traceback_lines(trace, place):
    every = user_frames(trace, place)
    frames, gap = shortened(every)
    lines = ["Traceback (most recent call last):"] if frames else []
    for index, (filename, number, function) in enumerate(frames):
        if index == gap:
            lines.append("  [%d frames left out]" % (len(every) - len(frames)))
        lines.append('  File "%s", line %d, in %s' % (place.name(filename), number, function))
        text = place.line(filename, number)
        if text:
            lines.append("    " + text)
    return lines


def syntax_lines(error, place):
    """Where a SyntaxError points to."""
    if not isinstance(error.filename, str) or not isinstance(error.lineno, int):
        return []
    lines = ['  File "%s", line %d' % (place.name(error.filename) or error.filename, error.lineno)]
    text = error.text if isinstance(error.text, str) else ""
    if text.strip():
        lines.append("    " + text.strip())
        if isinstance(error.offset, int) and error.offset > 0:
            indent = len(text) - len(text.lstrip())
            lines.append("    " + " " * max(error.offset - 1 - indent, 0) + "^")
    return lines


def error_lines(error, place, seen):
    """The traceback of an exception and of those that led to it, user frames only."""
    if error is None or id(error) in seen or len(seen) >= MAX_CHAIN:
        return []
    seen.add(id(error))
    lines = []
    if error.__cause__ is not None:
        lines = error_lines(error.__cause__, place, seen)
        link = "The above exception was the direct cause of the following exception:"
    elif not error.__suppress_context__:
        lines = error_lines(error.__context__, place, seen)
        link = "During handling of the above exception, another exception occurred:"
    if lines:
        lines += ["", link, ""]
    lines += traceback_lines(error.__traceback__, place)
    message = message_of(error)
    if isinstance(error, SyntaxError):
        lines += syntax_lines(error, place)
        message = error.msg if isinstance(error.msg, str) else message
    lines.append(type_name(type(error)) + (": " + message if message else ""))
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        lines += [str(note) for note in notes]
    parts = getattr(error, "exceptions", None)
    if isinstance(parts, tuple) and all([isinstance(part, BaseException) for part in parts]):
        for number, part in enumerate(parts, 1):
            inner = error_lines(part, place, seen)
            if inner:
                lines += ["  +---------------- %d ----------------" % number] + ["  | " + line for line in inner]
    return lines


def describe_error(error, place):
    fields = {"type": type_name(type(error)), "message": message_of(error)}
    try:
        frames = user_frames(error.__traceback__, place)
        fields["frames"] = [{"line": number, "name": name, "file": place.name(filename)}
                            for filename, number, name in shortened(frames)[0]]
        lines = [number for filename, number, _ in frames if filename == place.main]
        if lines:
            fields["line"] = lines[-1]
        elif isinstance(error, SyntaxError) and error.filename == place.main and isinstance(error.lineno, int):
            fields["line"] = error.lineno
        if isinstance(error, SyntaxError) and not frames and isinstance(error.msg, str):
            fields["message"] = clipped(error.msg, MAX_MESSAGE)
        if isinstance(error, SystemExit):
            fields["message"] = message_of(error) if error.code is not None else ""
        else:
            fields["traceback"] = clipped("\n".join(error_lines(error, place, set())))
    except BaseException as fault:
        fields["note"] = "the traceback could not be told: " + message_of(fault)
    return fields


def ended_well(error):
    if not isinstance(error, SystemExit):
        return False
    return error.code is None or (isinstance(error.code, int) and error.code == 0)


def describe_value(value):
    try:
        kind = type_name(type(value))
    except BaseException:
        kind = "object"
    try:
        text = clipped(bounded_repr(value, MAX_TEXT, ()))
    except BaseException as error:
        text = "<repr failed: %s: %s>" % (type_name(type(error)), message_of(error))
    return {"text": text, "type": kind}


BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"), dict: ("{", "}")}


def bounded_repr(value, budget, around):
    """repr(), but of builtin containers only as much as is shown: a list of a hundred million numbers costs nothing."""
    kind = type(value)
    if kind in (str, bytes, bytearray) and len(value) > budget:
        return "%r... (%d in all)" % (value[:budget], len(value))
    if kind is int and value.bit_length() > 14000:
        return "<int of %d bits>" % value.bit_length()
    if kind not in BRACKETS or not value:
        return repr(value)
    if id(value) in around or len(around) > 100:
        return BRACKETS[kind][0] + "..." + BRACKETS[kind][1]
    around += (id(value),)
    parts = []
    for item in value:
        if budget <= 0:
            parts.append("... (%d in all)" % len(value))
            break
        part = bounded_repr(item, budget, around)
        if kind is dict:
            part += ": " + bounded_repr(value[item], budget - len(part), around)
        parts.append(part)
        budget -= len(part) + 2
    comma = "," if kind is tuple and len(value) == 1 else ""
    return BRACKETS[kind][0] + ", ".join(parts) + comma + BRACKETS[kind][1]

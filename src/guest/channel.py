"""The guest's end of the private descriptor: frames as docs/guest-protocol.md describes them."""
from builtins import *  # noqa: F401,F403  (see driver.py)

import _json
from posix import close, dup2, fstat, read, sysconf, write

PROTOCOL = 1
HELLO, RUN, RESULT, REFUSED = 1, 2, 3, 4
HEADER_SIZE = 16
MAX_PAYLOAD = 64 << 20


def hide(fd):
    """Moves an inherited descriptor out of the way: programs find 3 free, and programs they start do not inherit it."""
    hidden = min(sysconf("SC_OPEN_MAX"), 1024) - fd
    dup2(fd, hidden, inheritable=False)
    close(fd)
    return hidden


def encoded(json_text):
    """UTF-8 of a JSON text. A lone surrogate, which strict JSON cannot hold, is shown as repr() would: \\ud800."""
    try:
        return json_text.encode()
    except UnicodeEncodeError:
        shown = ("\\\\u%04x" % ord(c) if "\ud800" <= c <= "\udfff" else c for c in json_text)
        return "".join(shown).encode()


class Channel:
    """Frames to and from the host: a header of 16 bytes, a JSON object, raw bytes."""

    def __init__(self, fd):
        self.fd = fd
        self.identity = self.look()
        self.line_fd, self.received = None, ()

    def look(self):
        seen = fstat(self.fd)
        return seen.st_dev, seen.st_ino

    def send(self, kind, fields, ident=0):
        text = encoded(to_json(fields))
        frame = ((4 + len(text)).to_bytes(4, "little") + bytes((PROTOCOL, kind, 0, 0)) + ident.to_bytes(8, "little")
                 + len(text).to_bytes(4, "little") + text)
        # A program that closed the descriptor and got its number for a file of its own keeps that file clean.
        try:
            if self.look() != self.identity:
                return
        except OSError:
            return
        while frame:
            try:
                frame = frame[write(self.fd, frame):]
            except OSError:
                return

    def close(self):
        try:
            if self.look() == self.identity:
                close(self.fd)
        except OSError:
            pass

    def read_exactly(self, source, size):
        parts = []
        while size:
            part = read(source, min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def receive(self, source):
        """(kind, id, fields, raw bytes) of the next frame; None when the host has gone. `received` is the frame itself."""
        header = self.read_exactly(source, HEADER_SIZE)
        if header is None:
            return None
        size, version, kind = int.from_bytes(header[:4], "little"), header[4], header[5]
        ident = int.from_bytes(header[8:], "little")
        if version != PROTOCOL:
            self.refuse(ident, "this guest speaks protocol %d, the host %d" % (PROTOCOL, version))
        if not 4 <= size <= MAX_PAYLOAD:
            self.refuse(ident, "a frame of %d bytes is outside of what is taken (4 to %d)" % (size, MAX_PAYLOAD))
        payload = self.read_exactly(source, size)
        if payload is None:
            return None
        self.received = header, payload
        end = 4 + int.from_bytes(payload[:4], "little")
        return kind, ident, from_json(payload[4:end].decode()), payload[end:]

    def refuse(self, ident, reason):
        self.send(REFUSED, {"reason": reason}, ident)
        raise SystemExit(1)


class _JsonRules:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    array_hook = None


from_json_at = _json.make_scanner(_JsonRules)
JSON_ESCAPES = {**{code: "\\u%04x" % code for code in range(32)}, 0x22: '\\"', 0x5C: "\\\\"}


def from_json(text):
    return from_json_at(text, 0)[0]


def to_json(value):
    if isinstance(value, str):
        return '"' + value.translate(JSON_ESCAPES) + '"'
    if isinstance(value, dict):
        return "{" + ",".join([to_json(key) + ":" + to_json(item) for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([to_json(item) for item in value]) + "]"
    return "null" if value is None else "%d" % value

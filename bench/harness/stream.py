"""A call whose answer is an event stream, read as it arrives on a raw socket."""

import re
import socket
import time

from . import messages


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def call_until(connection, port, body, number, pattern):
    """Sends one call and reads to the end of its answer. The first match of the pattern, and when it had arrived."""
    request = messages.http_bytes(body, port).replace(messages.UNIQUE, str(number)).encode()
    pattern = re.compile(pattern)
    connection.sendall(request)
    received, found, arrived = b"", None, None
    while not _whole(received):
        received += connection.recv(65536)
        if found is None:
            found = pattern.search(received)
            arrived = time.monotonic_ns()
    return found, arrived, received


def _whole(received):
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = re.search(rb"\r\ncontent-length: *(\d+)", head.lower())
    return len(body) >= int(length.group(1)) if length else body.endswith(b"0\r\n\r\n")

"""What this process uses of the machine, from /proc."""
from builtins import *  # noqa: F401,F403  (see driver.py)

import os


def resident():
    """Bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def threads():
    return len(os.listdir("/proc/self/task"))


PAGE = 4 << 10
UNIT = 16
FEW_BYTES = bytes(0).__sizeof__()
filling = []


def small_object(size):
    """A new object that takes this many bytes and has no parts."""
    if size <= UNIT:
        return object()
    return float(size) + 0.5 if size < FEW_BYTES else bytes(size - FEW_BYTES)


def fill_holes():
    """Lets what is allocated from now on lie together, on pages with nothing else on them.

    Where much was allocated and freed, the free memory of the interpreter lies in small pieces between what stayed. A fork that
    allocates there copies a page for every few objects. Objects that follow each other are the sign of a page that was free.
    """
    for size in range(UNIT, 512 + 1, UNIT):
        in_a_row, last, most = 0, 0, len(filling) + (1 << 18)
        while in_a_row < PAGE // size - 3 and len(filling) < most:
            filler = small_object(size)
            filling.append(filler)
            in_a_row = in_a_row + 1 if id(filler) - last == size else 0
            last = id(filler)

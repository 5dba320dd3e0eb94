#!/usr/bin/env python3
"""How long a call takes, end to end: bench/calls.py PRIMS [--calls N]."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = "print('hi')"


def row(name, seconds):
    ordered = sorted(value * 1000 for value in seconds)
    print(f"{name:24} {statistics.median(ordered):8.2f} ms median {ordered[int(len(ordered) * 0.99)]:8.2f} ms p99", flush=True)
    return statistics.median(ordered)


def plain_python(calls):
    def once():
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", CODE], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began
    return row("python, no sandbox", [once() for _ in range(calls)])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("prims")
    options.add_argument("--calls", type=int, default=100)
    args = options.parse_args()
    os.environ["PRIMS"] = args.prims
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    from harness import connection, program

    base = plain_python(args.calls)
    with program.Server() as server:
        for transport, era in connection.ways():
            with connection.connect(server, transport, era) as client:
                client.call(CODE)
                seconds = []
                for _ in range(args.calls):
                    answer = client.start(CODE).answer()
                    assert answer.stdout == "hi\n", answer
                    seconds.append(answer.seconds)
                print(f"{'':24} {row(f'{transport}, {era}', seconds) / base:8.2f} times plain python")


if __name__ == "__main__":
    main()

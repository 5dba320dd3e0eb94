"""The schedule of the probe (native/timing.h) for programs in Python that time calls of a library.

MODE --code TEXT --expect TEXT --count N [--warm-up N] [--rate R] [--start NANOSECONDS]
"""

import argparse
import json
import random
import time


def options(modes):
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--code", required=True)
    parser.add_argument("--expect", default="")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=0)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    return parser.parse_args()


def _wait_until(moment):
    left = (moment - time.monotonic_ns()) / 1e9
    if left > 0:
        time.sleep(left)


def measure(args, call):
    """call(code) returns what was printed; code is another text every time. Prints the samples as the probe does."""
    samples, failures, began = [], 0, 0
    number = random.randrange(10_000_000, 90_000_000)
    start = args.start or time.monotonic_ns()
    for index in range(args.count + args.warm_up):
        number += 1
        code = args.code.replace("%UNIQUE%", str(number))
        if args.rate:
            _wait_until(start + index * 1_000_000_000 // args.rate)
        started = time.monotonic_ns()
        printed = call(code)
        ended = time.monotonic_ns()
        if args.expect.replace("%UNIQUE%", str(number)) not in printed:
            failures += 1
        elif index >= args.warm_up:
            began = began or started
            samples.append(ended - started)
    print(json.dumps({"failures": failures, "elapsed": ended - began, "samples": samples}))

#!/usr/bin/env python3
"""Measures prims beside what one would take instead, in the same run.

    bench/run.py                     every row (a quarter of an hour; the first time it builds and installs the others too)
bench/run.py hello groupby       these rows
bench/run.py --list              what there is, a line each
bench/run.py --quick hello       a few samples, to see that it works; the figures mean little
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import rows  # noqa: E402,F401  (declares the rows)
from harness import paths  # noqa: E402
from harness.bench import REGISTRY, Run  # noqa: E402
from harness.results import Table  # noqa: E402


def default_program():
    for preset in ("release", "dev"):
        path = paths.ROOT / "build" / preset / "prims"
        if path.exists():
            return path
    return paths.ROOT / "build" / "release" / "prims"


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", nargs="*", metavar="ROW", help="all of them when none is named")
    options.add_argument("--list", action="store_true", help="show the rows and end")
    options.add_argument("--quick", action="store_true", help="few samples")
    options.add_argument("--json", metavar="FILE", help="where the figures go; default: build/bench/results.json")
    options.add_argument("--samples", action="store_true", help="put every single duration into the JSON file")
    options.add_argument("--prims", metavar="PATH", default=default_program(), help="default: %(default)s")
    options.add_argument(
        "--server-flag",
        metavar="FLAG",
        action="append",
        default=[],
        help="passed to every prims that is started, as in --server-flag=--templates=false",
    )
    options.add_argument("--brief", action="store_true", help="do not print command lines")
    return options.parse_args()


def machine():
    model = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def describe(run, host):
    python = subprocess.run([paths.PYTHON, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{run.program.version()} ({run.program.path}), {python} ({paths.PYTHON})")
    size = f"{host['cores']} cores, {host['memory_gib']} GiB"
    print(f"{host['cpu']}, {size}, Linux {host['kernel']}, load {host['load_before']:.2f}")
    print(
        "Durations are from the write of a request to the last byte of its answer. ours : this = our figure divided"
    )
    print("by the one in the line. Bars are about a quiet machine with two cores.")


def verdict(run):
    bars = [each for made in run.rows for each in made.comparisons if each.passed is not None]
    missed = [each for each in bars if not each.passed]
    print(f"\n{len(bars) - len(missed)} of {len(bars)} bars hold." + (" Missed:" if missed else ""))
    for each in missed:
        print(f"  {each.label.strip()}: {each.text}, bar {each.bar.shown(each.value, each.bar.bar)}")


def main():
    args = arguments()
    unknown = [name for name in args.rows if name not in REGISTRY]
    if unknown:
        sys.exit(f"no such row: {', '.join(unknown)}; --list shows them")
    if args.list:
        for name, (title, _) in REGISTRY.items():
            print(f"{name:20} {title}")
        return
    if not os.access(args.prims, os.X_OK):
        sys.exit(
            f"no program at {args.prims}: cmake --preset release && cmake --build --preset release --target prims"
        )
    host = machine()
    run = Run(args.prims, args.server_flag, args.quick, Table(not args.brief))
    describe(run, host)
    try:
        for name in args.rows or REGISTRY:
            run.execute(name)
    finally:
        run.close()
        target = pathlib.Path(args.json) if args.json else paths.BUILD / "results.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            json.dumps(
                {
                    "format": 1,
                    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "quick": args.quick,
                    "machine": host,
                    "prims": {
                        "path": run.program.path,
                        "version": run.program.version(),
                        "flags": args.server_flag,
                    },
                    "rows": [made.as_json(args.samples) for made in run.rows],
                },
                indent=1,
            )
            + "\n"
        )
    verdict(run)
    print(f"figures: {target}")


if __name__ == "__main__":
    main()

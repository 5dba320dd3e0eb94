#!/usr/bin/env python3
"""Runs the GoogleTest programs of a build, in parallel, and counts their tests.

    tests/run_unit.py build/dev --label unit
    tests/run_unit.py build/dev --label sandbox --user prims-test    copied to where that user can read them

ctest knows which programs there are, their labels and their time limits.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import time

COUNT = {word: re.compile(rf"^\[  {word} *\] (\d+) tests?[.,]", re.MULTILINE) for word in ("PASSED", "FAILED", "SKIPPED")}
CLEARED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")  # set, they hide faults


class Program:
    def __init__(self, entry):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command", [])
        self.labels = properties.get("LABELS", [])
        self.timeout = float(properties.get("TIMEOUT", 600))
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))


def programs(build, label):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    found = [Program(entry) for entry in json.loads(listed.stdout)["tests"]]
    return [p for p in found if label in p.labels]


def run(program, user):
    command, env = program.command, {k: v for k, v in os.environ.items() if k not in CLEARED}
    env.update(program.environment)
    folder = program.folder
    if user:
        home = pathlib.Path(user.pw_dir)
        target = home / "unit" / program.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(command[0], target)
        for path in (target.parent, target):
            os.chmod(path, 0o755)
        env = {"HOME": str(home), "USER": user.pw_name, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
               **program.environment}
        command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", str(target), *command[1:]]
        folder = home
    began = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=program.timeout, check=False)
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, status = (late.stdout or b"").decode("utf-8", "replace") + f"\nno end within {program.timeout:.0f} s", -1
    except OSError as error:
        output, status = str(error), -1
    # The last line counts: a program may show the output of one that it ran itself.
    counts = {word: int(found[-1]) if (found := pattern.findall(output)) else 0 for word, pattern in COUNT.items()}
    if status and not counts["FAILED"]:
        counts["FAILED"] = 1  # it crashed, or hung
    return program, status, counts, output, time.monotonic() - began


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    options.add_argument("--label", default="unit")
    options.add_argument("--user", help="run as this user (as root only)")
    options.add_argument("--jobs", type=int, default=2)
    args = options.parse_args()
    user = pwd.getpwnam(args.user) if args.user else None
    total = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        work = [pool.submit(run, program, user) for program in programs(args.build, args.label)]
        for job in concurrent.futures.as_completed(work):
            program, status, counts, output, seconds = job.result()
            for word, number in counts.items():
                total[word] += number
            print(f"{'FAIL' if status else 'ok':5} {program.name:12} {seconds:6.1f}s  {counts['PASSED']} passed, "
                  f"{counts['FAILED']} failed, {counts['SKIPPED']} skipped", flush=True)
            if status:
                print("\n".join("      " + line for line in output.splitlines()[-60:]), flush=True)
            elif counts["SKIPPED"]:
                reasons = re.findall(r"^(.*\n)?\[  SKIPPED \] (\S+) \(", output, re.MULTILINE)
                print("\n".join(f"      skipped {name}: {why.strip()}" for why, name in reasons[:20]), flush=True)
    print(f"{args.label}: {total['PASSED']} passed, {total['FAILED']} failed, {total['SKIPPED']} skipped")
    return 1 if total["FAILED"] or not total["PASSED"] else 0


if __name__ == "__main__":
    sys.exit(main())

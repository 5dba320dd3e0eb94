"""Where things lie, and the environment that every measured program starts with."""

import os
import pathlib
import shlex

BENCH = pathlib.Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
BUILD = ROOT / "build" / "bench"  # everything that is made or installed on the way

# The interpreter of every baseline, and the one that prims is told to use: no shim, no site hooks.
PYTHON = "/usr/bin/python3"


def environment():
    """Nothing that would flatter or slow one side: no PYTHON*, no PRIMS_*, no settings for numeric libraries."""
    kept = {name: os.environ[name] for name in ("PATH", "USER", "SSL_CERT_FILE") if name in os.environ}
    home = BUILD / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8"}


def scratch():
    """The working directory of baselines; scripts write to output/ as they do in a sandbox."""
    folder = BUILD / "scratch"
    (folder / "output").mkdir(parents=True, exist_ok=True)
    return folder


def command_text(line):
    """A command line as one may repeat it from the top of the repository, on one line."""
    return shlex.join(str(word) for word in line).replace(str(ROOT) + "/", "").replace("\n", "\\n")

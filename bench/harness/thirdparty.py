"""Other people's programs, at the versions that this folder pins, installed into build/bench on first use."""

import hashlib
import re
import shutil
import subprocess

from . import paths
from .native import Unavailable

INSTALL_S = 1800


def _need(program, how):
    found = shutil.which(program)
    if not found:
        raise Unavailable(f"{program} is not installed: {how}")
    return found


def _run(line, cwd, what):
    print(f"  ({what}, once)", flush=True)
    done = subprocess.run(
        [str(word) for word in line],
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=INSTALL_S,
    )
    if done.returncode != 0:
        raise Unavailable(f"{what} failed: {(done.stderr or done.stdout).strip()[-600:]}")


def _digest(files):
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _once(name, files, make):
    """A folder that `make` fills, made anew when one of the files has changed."""
    target = paths.BUILD / "installed" / f"{name}-{_digest(files)}"
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        make(target)
        (target / "complete").touch()
    return target


def requirement_files(*names):
    return [paths.BENCH / "packages" / f"{name}.txt" for name in names]


def venv(*names):
    """The interpreter of a fresh virtual environment with the packages of packages/NAME.txt, its modules compiled."""
    files = requirement_files(*names)

    def make(target):
        _run([paths.PYTHON, "-m", "venv", target], None, "making a virtual environment")
        wanted = [word for file in files for word in ("-r", file)]
        _run(
            [target / "bin/python", "-m", "pip", "install", "--require-hashes", "--compile", *wanted],
            None,
            f"installing {' and '.join(names)}",
        )

    return str(_once("venv-" + "-".join(names), files, make) / "bin/python")


def node_folder(source):
    """A copy of a folder of ours with the packages that its lock names."""
    node = _need("node", "apt-get install nodejs npm")
    npm = _need("npm", "apt-get install npm")
    folder = paths.BENCH / source
    files = [file for file in folder.iterdir() if file.is_file()]

    def make(target):
        for file in files:
            shutil.copy(file, target)
        _run([npm, "ci", "--no-audit", "--no-fund", "--omit=dev"], target, f"installing npm packages for {source}")

    return node, _once(source.replace("/", "-"), files, make)


def rust_server():
    """The lock names no registry: that is the user's to choose, so cargo is asked what it would write there."""
    cargo = _need("cargo", "install Rust 1.88 or newer")
    folder = paths.BENCH / "servers/rust"
    files = [folder / "Cargo.toml", folder / "Cargo.lock.pinned", folder / "src/main.rs"]

    def make(target):
        (target / "src").mkdir()
        shutil.copy(folder / "src/main.rs", target / "src")
        shutil.copy(folder / "Cargo.toml", target)
        _run([cargo, "generate-lockfile"], target, "asking cargo for its registry")
        registry = re.search(r'^source = "(.*)"$', (target / "Cargo.lock").read_text(), re.MULTILINE).group(1)
        pinned = (folder / "Cargo.lock.pinned").read_text().replace("@registry@", registry)
        (target / "Cargo.lock").write_text(pinned)
        _run([cargo, "build", "--release", "--locked"], target, "building the Rust SDK's server")

    return [str(_once("rust-server", files, make) / "target/release/bench-server")]


def go_server():
    go = _need("go", "install Go 1.25 or newer")
    folder = paths.BENCH / "servers/go"

    def make(target):
        _run(
            [go, "build", "-mod=readonly", "-trimpath", "-o", target / "bench-server", "."],
            folder,
            "building the Go SDK's server",
        )

    return [str(_once("go-server", list(folder.iterdir()), make) / "bench-server")]


def typescript_server():
    node, folder = node_folder("servers/typescript")
    return [node, str(folder / "server.mjs")]


def echo_server():
    """Our own transport with an echo tool, from this source tree."""
    cmake = _need("cmake", "apt-get install cmake ninja-build")
    build = paths.BUILD / "cmake"
    if not (build / "build.ninja").exists():
        _run(
            [cmake, "--preset", "release", "-B", build, "-DPRIMS_TESTS=OFF"],
            paths.ROOT,
            "configuring our echo server",
        )
    done = subprocess.run(
        [cmake, "--build", str(build), "--target", "prims_bench"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise Unavailable(f"our echo server does not build: {done.stdout[-600:]}")
    return [str(build / "bench/prims_bench_echo"), "http"]


def uv():
    """The package installer, of the version that prims carries."""
    return str(_once("uv", requirement_files("uv"), _make_uv) / "bin/uv")


def _make_uv(target):
    _run([paths.PYTHON, "-m", "venv", target], None, "making a virtual environment")
    _run(
        [target / "bin/python", "-m", "pip", "install", "--require-hashes", "-r", *requirement_files("uv")],
        None,
        "installing uv",
    )

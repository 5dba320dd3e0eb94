#!/usr/bin/env python3
"""Checks that includes follow the arrows of layers.txt.

layers.txt holds one line per folder of src/: `mcp: base json !sys/`. A file of src/mcp/ may include its own folder, the
folders named there and, transitively, what those may include. A word with `!` is a prefix of system headers that the folder
must not include. With --self-test it checks itself on small examples.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = {".h", ".cpp", ".c", ".inc"}


class Layer:
    """One line of layers.txt."""

    def __init__(self, text):
        name, _, rest = text.partition(":")
        words = rest.split()
        self.name = name.strip()
        self.text = text
        self.uses = [word for word in words if not word.startswith("!")]
        self.forbidden = [word[1:] for word in words if word.startswith("!")]


def read_layers(lines):
    """The layers by name; a folder may only use folders declared above it, so there is no cycle."""
    layers, faults = {}, []
    for number, line in enumerate(lines, 1):
        text = line.split("#", 1)[0].rstrip()
        if not text:
            continue
        layer = Layer(text)
        for used in layer.uses:
            if used not in layers:
                faults.append(f"layers.txt:{number}: `{layer.name}` uses `{used}`, which is not declared above it")
        layers[layer.name] = layer
    return layers, faults


def closure(layers, name):
    """Every folder that `name` may include, itself too."""
    seen, todo = set(), [name]
    while todo:
        folder = todo.pop()
        if folder not in seen:
            seen.add(folder)
            todo.extend(used for used in layers[folder].uses if used in layers)
    return seen


def check_file(layers, folder, path, text):
    """Faults of one file, each with the line of layers.txt that it breaks."""
    layer, allowed = layers[folder], closure(layers, folder)
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        ours, system = found.groups()
        target = ours.split("/", 1)[0] if ours and "/" in ours else None
        if target in layers and target not in allowed:
            yield (f"{path}:{number}: `{folder}` must not include \"{ours}\"; layers.txt says `{layer.text.strip()}`. "
                   f"A call against the arrows goes through an interface that `{folder}` owns, that `{target}` or a folder "
                   f"above both implements, and that src/server wires.")
        elif ours and target not in layers:
            yield f"{path}:{number}: include \"{ours}\" by its path from src/, as in \"{folder}/{ours}\""
        for prefix in layer.forbidden:
            if system and system.startswith(prefix):
                yield (f"{path}:{number}: `{folder}` must not include <{system}>; layers.txt says `{layer.text.strip()}`. "
                       f"Such calls belong into a folder below, behind plain types.")


def check_tree(root):
    layers, faults = read_layers((root / "layers.txt").read_text(encoding="utf-8").splitlines())
    src = root / "src"
    for folder in sorted(entry.name for entry in src.iterdir() if entry.is_dir()):
        if folder not in layers:
            faults.append(f"src/{folder}: has no line in layers.txt")
            continue
        for path in sorted((src / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                text = path.read_text(encoding="utf-8")
                faults.extend(check_file(layers, folder, path.relative_to(root), text))
    return faults


def self_test():
    layers, faults = read_layers(["base:", "io: base", "mcp: base   !boost/asio !sys/", "top: io mcp  # above all"])
    assert not faults and closure(layers, "top") == {"top", "io", "mcp", "base"}

    def count(folder, text):
        return len(list(check_file(layers, folder, "f", text)))

    assert count("mcp", '#include "base/a.h"\n#include "mcp/b.h"\n#include <vector>\n') == 0
    assert count("mcp", '#include "io/a.h"\n') == 1
    assert count("mcp", "#include <boost/asio/post.hpp>\n# include <sys/stat.h>\n") == 2
    assert count("base", '#include "top/a.h"\n') == 1
    assert count("io", '#include "neighbour.h"\n') == 1
    assert count("top", '#include "base/a.h"\n') == 0
    assert read_layers(["io: base"])[1]
    message = next(check_file(layers, "mcp", "f", '#include "io/a.h"'))
    assert "`mcp: base   !boost/asio !sys/`" in message and "interface" in message


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    faults = check_tree(ROOT)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

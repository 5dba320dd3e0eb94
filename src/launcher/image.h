// The launcher program, carried inside prims so that the product is one file.
#pragma once

#include <span>

namespace prims::launcher {

/// A complete static ELF program.
std::span<const unsigned char> image();

}  // namespace prims::launcher

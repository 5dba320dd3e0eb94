// The module `forking` (forking.cpp), carried inside prims.
#pragma once

#include <string_view>

namespace prims::guest {

/// A complete shared object.
std::string_view forking_image();

}  // namespace prims::guest

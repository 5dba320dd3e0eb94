// MIME types by file name.
#pragma once

#include <string>
#include <string_view>

namespace prims::session {

/// "image/png" for "plot.PNG"; application/octet-stream when the suffix says nothing.
std::string mime_type(std::string_view file_name);

}  // namespace prims::session

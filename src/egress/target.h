// What a request from inside the sandbox asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "http/url.h"

namespace prims::egress {

/// "/index/0/numpy/": a page below the base URL of one of the configured indexes.
struct PageTarget {
  std::size_t index = 0;
  std::string rest;  ///< "numpy/"
};

/// "/file/https/host/443/path?query"
struct FileTarget {
  std::string scheme;
  std::string host;
  std::uint16_t port = 0;
  std::string target;  ///< "/path?query"
};

using Target = std::variant<PageTarget, FileTarget>;

/// Kind::denied, with a sentence, for everything that is not exactly one of the two forms: other methods,
/// absolute-form, dot segments, encoded slashes, backslashes, credentials, characters that do not belong into
/// a path.
Result<Target> read_target(std::string_view method, std::string_view target);

/// The path at which the broker serves what `url` names.
std::string file_path(const http::Url& url);

}  // namespace prims::egress

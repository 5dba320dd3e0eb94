// Index pages (the simple repository API: PEP 503 HTML, PEP 691 JSON) with their file URLs replaced.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/url.h"

namespace prims::egress {

/// The URL to offer instead of a file's own; nothing when the file must not be offered.
using Replace = std::function<std::optional<std::string>(const http::Url&)>;

/// `files[].url` of a PEP 691 page, relative to `base`. Files without a usable URL are left out; the rest is
/// untouched.
Result<std::string> rewrite_json(std::string_view page, const http::Url& base, const Replace& replace);

/// `href` of every anchor of a PEP 503 page, relative to its <base>, else to `base`; fragments (hashes) are
/// kept. Anchors without a usable URL lose it. <base> elements and comments are dropped.
std::string rewrite_html(std::string_view page, const http::Url& base, const Replace& replace);

}  // namespace prims::egress

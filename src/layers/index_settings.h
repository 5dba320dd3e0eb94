// Which package indexes are asked, and in which order.
//
// A setting of ours comes first, then uv's own variables (UV_DEFAULT_INDEX, UV_INDEX_URL, UV_INDEX,
// UV_EXTRA_INDEX_URL) and configuration files. What uv uses when nobody says anything is uv's to know: it is
// asked once, in a sandbox without network, by letting it fail and reading which address it wanted.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/store.h"

namespace prims::layers {

/// Where the user's uv.toml lies in the sandbox; the system's keeps its place.
inline constexpr const char* kUvUserFile = "/opt/job/uv.toml";

struct IndexSettings {
  std::vector<std::string> extra;          ///< URLs that are asked before the default one
  std::optional<std::string> default_url;  ///< nothing: uv must be asked
  std::vector<sandbox::FileEntry>
      uv_files;          ///< uv's configuration files, as they go into the sandbox where it is asked
  std::string identity;  ///< changes when any of the above does
};

/// Reads an environment variable; an unset one is nothing.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

IndexSettings read_index_settings(const StoreOptions& options, const Lookup& environment);

/// The index in what uv says when it cannot reach it: "... for url (SCHEME://HOST/simple/NAME/)" gives
/// "SCHEME://HOST/simple/".
std::optional<std::string> index_in_error(std::string_view output, std::string_view package);

/// A URL for people: without user name and password.
std::string without_credentials(std::string_view url);

}  // namespace prims::layers

// Making and finishing the file tree of a layer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "layers/store.h"

namespace prims::layers {

struct TreeSize {
  Bytes disk;                 ///< used blocks
  Bytes content;              ///< lengths of all files
  std::uint64_t entries = 0;  ///< files, directories and links

  bool operator==(const TreeSize&) const = default;
};

/// "lib/python3.11/site-packages".
std::string site_packages(const Interpreter& interpreter);

/// An empty virtual environment as it works at kEnvironmentPath: pyvenv.cfg, bin/python links, site-packages.
/// Everything in it, and `environment` itself, belongs to `owner`.
Result<> write_skeleton(const std::filesystem::path& environment, const Interpreter& interpreter,
                        uid_t owner);

/// Writes pyvenv.cfg and the bin/python links anew: packages may have put their own files in these places.
/// Follows no link.
Result<> write_interpreter_files(const std::filesystem::path& environment, const Interpreter& interpreter);

/// Makes `directory` below an existing one; a link or file in its place is removed.
Result<> make_plain_directory(const std::filesystem::path& directory);

/// A directory that jobs of this owner may write to; its parent is ours alone.
Result<> make_writable(const std::filesystem::path& directory, uid_t owner);

/// A new file with that content; a link or file in its place is removed.
Result<> write_plain_file(const std::filesystem::path& file, std::string_view content);

/// What untrusted installers left becomes fit for sharing: only files, directories and links; no setuid bits;
/// readable by all and writable by the owner alone, which is this process; no link that leads out of the
/// environment but bin/python*. invalid_input names what cannot be kept.
Result<TreeSize> finish_tree(const std::filesystem::path& environment);

/// The size of a finished tree.
Result<TreeSize> measure_tree(const std::filesystem::path& environment);

}  // namespace prims::layers

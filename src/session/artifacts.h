// What a run made or changed below output/.
//
// A snapshot before and the same walk after; a file counts when its identity differs. Times that a program
// sets by hand (os.utime) hide nothing: the change time of the inode is the kernel's alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace prims::session {

struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

/// Files by raw path below output/. An empty one fits a workspace that was made for this run.
using Snapshot = std::map<std::string, FileIdentity>;

struct Artifact {
  std::string path;           ///< raw bytes, below output/; for opening it again
  std::string name;           ///< last component, valid UTF-8
  std::string relative_path;  ///< to output/, valid UTF-8
  std::uint64_t size = 0;
  std::string mime;
};

struct ArtifactLimits {
  std::size_t listed = 1000;     ///< artifacts in a result
  std::size_t visited = 100000;  ///< directory entries looked at
  std::size_t depth = 32;        ///< nested directories
};

struct Artifacts {
  std::vector<Artifact> files;  ///< sorted by path
  std::string incomplete;  ///< one sentence naming the limit that was hit; empty when everything is listed
};

/// `output` may have been replaced by anything; then there are no files. Both walk on the calling thread
/// within the limits.
Snapshot take_snapshot(const std::filesystem::path& output, const ArtifactLimits& limits = {});
Artifacts changed_files(const std::filesystem::path& output, const Snapshot& before,
                        const ArtifactLimits& limits = {});

/// Copies artifacts below `destination`, which is created. Directories inside it that are links are refused.
/// Stops with Kind::exhausted before more than `total` is written.
Result<> copy_artifacts(const std::filesystem::path& output, const std::vector<Artifact>& files,
                        const std::filesystem::path& destination, Bytes total);

}  // namespace prims::session

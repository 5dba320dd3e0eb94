// The sandbox in which packages are resolved, built and installed: one fresh sandbox for each job, whose only
// way out is the egress broker, when the job may use the network at all.
//
// Inside a job, besides the system and the interpreter:
//
//   /env     -> /mnt/env, the virtual environment
//   /mnt/*   what the job attaches; the only writable places besides memory
//   /opt/uv  uv
//   /opt/job files that the job brings
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "egress/broker.h"
#include "io/task.h"
#include "layers/store.h"
#include "sandbox/sandbox.h"

namespace prims::layers {

inline constexpr const char* kUvInside = "/opt/uv";
inline constexpr const char* kEnvironmentMount = "/mnt/env";
inline constexpr const char* kCacheMount = "/mnt/cache";
inline constexpr const char* kOutputMount = "/mnt/out";

struct Job {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< beyond the usual PATH, HOME, TMPDIR, LANG
  std::vector<sandbox::FileEntry> files;
  std::vector<sandbox::Attachment> attachments;  ///< targets below /mnt
  std::vector<std::string> indexes;              ///< URLs that the broker offers; empty: no network
  std::filesystem::path file_hosts;  ///< where what brokers learn of these indexes is kept between jobs
  Deadline deadline;
};

struct JobResult {
  sandbox::Outcome outcome;
  std::string out;
  std::string err;
  std::vector<std::string> refusals;         ///< what the broker did not let through, one sentence each
  std::optional<std::string> network_error;  ///< no index gave any answer, and why

  bool succeeded() const;
};

/// Where index number `number` of a job's list is found inside. Always the same, so that uv's cache is of
/// use.
std::string index_url_inside(std::size_t number);

class Workshop {
 public:
  /// `host` must outlive this object.
  Workshop(sandbox::Host& host, Interpreter interpreter);

  /// Where uv lies on the host; before the first job that runs it.
  void set_uv(std::filesystem::path uv) { uv_ = std::move(uv); }

  /// Runs a job to its end. What the job's program did is a JobResult; an Error means that there is no
  /// sandbox.
  io::Task<Result<JobResult>> run(Job job);

  /// Files that jobs may write must belong to this user on the host.
  uid_t owner() const { return host_.workspace_owner(); }

 private:
  sandbox::PrepareSpec specification(const Job& job) const;
  Result<std::unique_ptr<egress::Broker>> open_way_out(sandbox::Sandbox& sandbox, const Job& job) const;

  sandbox::Host& host_;
  Interpreter interpreter_;
  std::filesystem::path uv_;
};

}  // namespace prims::layers

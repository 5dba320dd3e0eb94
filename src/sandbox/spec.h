// What a sandbox consists of, as data. The server describes; the launcher (a separate small program)
// interprets.
//
// A sandbox comes about in two halves. *Prepare* makes everything that no call has a say in: namespaces, the
// read-only root, limits, the lock-down. *Attach* brings in what a call needs, from outside and after the
// lock-down: directories (workspace, package layer), then the program to start. A prepared sandbox may wait
// between the two for as long as it likes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/empty_tree.h"
#include "base/unique_fd.h"

namespace prims::sandbox {

enum class Access { read_only, read_write };

/// A directory or file of the host that appears in the root, always nosuid and nodev. Read-only unless said
/// otherwise.
struct BindMount {
  std::string source;  ///< absolute path on the host; must not lie in a place that a guest can write
  std::string target;  ///< absolute path inside
  Access access = Access::read_only;
};

struct FileEntry {
  std::string path;  ///< absolute path inside; parents are made
  std::string content;
  mode_t mode = 0444;
};

struct SymlinkEntry {
  std::string path;
  std::string target;
};

/// A private memory file system, always bounded, nosuid and nodev.
struct TmpfsMount {
  std::string path;
  Bytes size;
  std::uint64_t inodes = 65536;
  mode_t mode = 0700;
};

/// The file tree of a sandbox. Everything outside `tmpfs` and writable attachments is read-only after
/// prepare.
struct Root {
  std::vector<std::string> directories;  ///< empty directories: mount points for late attachments among them
  std::vector<BindMount> binds;
  std::vector<FileEntry> files;
  std::vector<SymlinkEntry> symlinks;
  std::vector<TmpfsMount> tmpfs;
  /// Parents of directories that attachments will make writable, for Landlock (a rule on a mount point itself
  /// does not cover what is mounted there later): for an attachment at /sandbox/data this is /sandbox.
  std::vector<std::string> writable_parents;
};

/// Limits of one run. Zero means "no limit of this kind" only where said.
struct Limits {
  Bytes memory = gib(2);            ///< all processes, tmpfs and shared memory together
  std::uint32_t processes = 256;    ///< processes and threads
  std::uint32_t cpus = 0;           ///< share in whole cores; 0: all that the host has
  Milliseconds cpu_time{0};         ///< CPU time of all processes together; 0: none beyond the wall clock
  Bytes file_size = gib(2);         ///< largest single file (RLIMIT_FSIZE)
  std::uint32_t open_files = 1024;  ///< per process (RLIMIT_NOFILE)
  Bytes workspace = gib(2);         ///< bytes below writable attachments, by watchdog
};

enum class Network {
  none,             ///< own network namespace with only a loopback interface of its own
  loopback_broker,  ///< the same, plus one listening TCP socket on 127.0.0.1 whose accepting side the host
                    ///< holds
};

struct PrepareSpec {
  Root root;
  Limits limits;
  Network network = Network::none;
  std::uint16_t broker_port = 0;  ///< with loopback_broker: the port inside
  std::string hostname = "sandbox";
};

/// One directory of the host, mounted into a prepared sandbox after its lock-down (open_tree, move_mount).
struct Attachment {
  std::string source;  ///< absolute path on the host, no symlinks below the state directory
  std::string target;  ///< one of Root::directories
  Access access = Access::read_only;
  /// What `source` was made as, if it is new: then an untouched one needs no walk to be measured.
  std::shared_ptr<const EmptyTree> made = nullptr;
};

/// The program to start in an attached sandbox. It inherits exactly the descriptors named here.
struct StartSpec {
  std::vector<std::string> argv;         ///< argv[0] is an absolute path inside
  std::vector<std::string> environment;  ///< NAME=value; complete, nothing is added
  std::string directory = "/";           ///< working directory, inside
  UniqueFd standard_input;               ///< fd 0; invalid: /dev/null
  UniqueFd standard_output;              ///< fd 1
  UniqueFd standard_error;               ///< fd 2
  std::vector<UniqueFd> extra;           ///< fd 3, 4, ... in this order
};

/// A program whose forks are to run in sandboxes of their own (Template in sandbox.h).
struct TemplateSpec {
  /// Root and limits of each sandbox. The template's own file tree is the same; writable places are its own.
  PrepareSpec prepare;
  Limits limits;                        ///< of the template itself
  std::vector<Attachment> attachments;  ///< read-only ones, there in the template and in every fork
  /// Started once. `extra` stays empty: descriptor 3 becomes the socket over which forks are asked for, 4 the
  /// description of the lock-down; both are for the `forking` module of src/guest, which waits there.
  StartSpec start;
  Milliseconds warm_up{60'000};  ///< time until it must wait for its first fork
  std::uint32_t forks = 64;      ///< sandboxes at once, at most 128
};

/// Descriptors of one fork, as in StartSpec, and what is mounted before it runs.
struct ForkSpec {
  std::vector<Attachment> attachments;
  UniqueFd standard_input;
  UniqueFd standard_output;
  UniqueFd standard_error;
  std::vector<UniqueFd> extra;
};

}  // namespace prims::sandbox

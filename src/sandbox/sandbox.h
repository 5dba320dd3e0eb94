// Sandboxes on this host.
//
//   Host      what is found once at start: launcher, compiled seccomp filter, limit backend, uid range, tier
//   Sandbox   one prepared sandbox: attach, start, wait; destroying it kills everything in it
//   Template  a warmed-up program in a sandbox of its own, whose forks run in fresh sandboxes
//
// Nothing here knows MCP, JSON or Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/task.h"
#include "sandbox/outcome.h"
#include "sandbox/spec.h"

namespace prims::sandbox {

/// Isolation that held, strongest first. Found by doing, never by reading version numbers.
enum class Tier {
  full,        ///< user namespaces, seccomp, Landlock, and limits by cgroup
  namespaces,  ///< user namespaces and seccomp; limits by rlimits and a watchdog, or Landlock missing
  none,        ///< less than that: no sandbox can be made
};

std::string_view to_string(Tier tier);

struct HostOptions {
  /// Host uids that sandboxes may use when the server is root; one per sandbox at a time, never 0.
  uid_t first_uid = 200000;
  std::uint32_t uid_count = 65536;
  Tier minimum = Tier::namespaces;
};

/// One line of `prims doctor`: an attempt made on this host and what came of it.
struct Finding {
  std::string name;  ///< "user namespaces"
  bool holds = false;
  std::string attempt;  ///< what was tried
  std::string detail;   ///< what came of it
  std::string fix;      ///< what to change when it does not hold; empty otherwise
};

class Host;

class Sandbox {
 public:
  virtual ~Sandbox() = default;

  /// Mounts the attachments into the waiting sandbox, before it gets anything to do. One that goes where
  /// another one is covers it.
  virtual io::Task<Result<>> attach(std::vector<Attachment> attachments) = 0;

  /// From now on the limits are looked at that somebody has to look at: for a fork, before it gets something
  /// to do. start() does so by itself.
  virtual Result<> watch() = 0;

  /// Starts the program: fully locked down (no capabilities, no_new_privs, rlimits, Landlock, seccomp) before
  /// it runs.
  virtual io::Task<Result<>> start(StartSpec spec) = 0;

  /// Waits for the end of the started program or the deadline, whichever is first. True: it ended. Limits
  /// watched by this side (memory, CPU time, workspace bytes) end it too.
  virtual io::Task<bool> ended_by(Deadline deadline) = 0;

  /// Sends a signal to the started program only (not to its children). Harmless after its end.
  virtual void signal(int number) = 0;

  /// Kills everything in the sandbox with this as its outcome, unless it already has one. Returns at once.
  virtual void kill(Outcome reason) = 0;

  /// Waits until every process of the sandbox but its init is gone and returns the outcome (the first one
  /// that was set). Init, which is this program's own, and the namespaces follow by themselves.
  virtual io::Task<Outcome> finish() = 0;

  /// Complete after finish().
  virtual Usage usage() const = 0;

  /// With Network::loopback_broker: the listening socket inside the sandbox's network namespace. Valid once.
  virtual UniqueFd take_broker_socket() = 0;
};

/// A program that has warmed up and only forks from then on: no call's data and no other network than a
/// loopback interface ever reach it. Its forks run in new sandboxes that are in no way weaker than those of
/// Host::prepare(): own namespaces, own init, own limits, locked down before the fork runs a line.
class Template {
 public:
  /// It ends when the last of its sandboxes has.
  virtual ~Template() = default;

  /// A prepared sandbox in which a fork of the program runs already, so attach() is open and start() is not;
  /// watch() is the caller's.
  /// The Error is `exhausted` when as many sandboxes live as TemplateSpec::forks allows.
  virtual io::Task<Result<std::unique_ptr<Sandbox>>> fork(ForkSpec spec) = 0;

  /// False: it has ended or broken, and fork() fails from now on.
  virtual bool alive() const = 0;
};

class Host {
 public:
  virtual ~Host() = default;

  /// Tries what this host allows. An Error names what to change when not even options.minimum holds.
  static Result<std::unique_ptr<Host>> create(HostOptions options);

  /// Every attempt that create() makes and more, one finding each; never fails. For `prims doctor`.
  static std::vector<Finding> examine(HostOptions options);

  virtual io::Task<Result<std::unique_ptr<Sandbox>>> prepare(PrepareSpec spec) = 0;

  /// Waits until the program has warmed up and asks for its first fork. An Error names what failed; what the
  /// program wrote to its standard error says more.
  virtual io::Task<Result<std::unique_ptr<Template>>> make_template(TemplateSpec spec) = 0;

  /// The host uid that files in writable attachments have on the host, whichever uid the sandbox runs as. As
  /// root it is HostOptions::first_uid (attached through an id-mapped mount, so files never change owner
  /// between calls), else our own.
  virtual uid_t workspace_owner() const = 0;

  virtual Tier tier() const = 0;
  virtual Enforcement enforcement() const = 0;
};

}  // namespace prims::sandbox

// For tests of sandboxes: a Host, programs run in it, and what they said.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/loop.h"
#include "sandbox/root.h"
#include "sandbox/sandbox.h"

namespace prims::sandbox::testing {

/// What a program in a sandbox did.
struct Ran {
  Outcome outcome;
  std::string out;  ///< standard output and error together
  Usage usage;

  int exit_code() const;
};

struct Program {
  std::vector<std::string> argv;
  std::vector<Attachment> attachments;
  PrepareSpec prepare{.root = minimal_root()};
  std::string directory = "/";
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "HOME=/sandbox/home", "LANG=C.UTF-8"};
  std::vector<UniqueFd> extra;
  Milliseconds limit{20'000};
};

/// `code` for Debian's Python, isolated.
Program python(std::string code);
Program shell(std::string script);

class SandboxTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  /// Prepares, attaches, starts, waits.
  Ran run(Program program);
  io::Task<Result<Ran>> run_task(Program program);

  Host& host() { return *host_; }
  io::Loop loop_;

 private:
  static std::unique_ptr<Host> host_;
};

/// A directory that goes with the test, owned by the workspace owner.
class TempDir {
 public:
  explicit TempDir(uid_t owner);
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace prims::sandbox::testing

// What one environment has ready: a template, and guests forked from it ahead that wait for a call each.
//
// Templates (templates.h) decides what a Stock should have; here is how it gets and loses it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "io/scope.h"
#include "python/guest.h"
#include "python/runner.h"

namespace prims::python {

class Stock : public std::enable_shared_from_this<Stock> {
 public:
  /// Where its Tasks run. Both outlive it.
  struct Scopes {
    io::TaskScope* makers;  ///< may be cancelled
    io::TaskScope* enders;  ///< what ends guests, in peace
  };

  Stock(std::string name, RunLimits limits, WorkspaceSource workspaces, Scopes scopes);
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  /// The guest that has waited longest, else a fresh fork, in this workspace or one of its own. Nothing when
  /// neither can be had.
  static io::Task<std::optional<Arrival>> take(std::shared_ptr<Stock> self,
                                               std::optional<Workspace> workspace);

  /// Starts a template on `layer`, whose lease is held as long as the template or a guest of it lives. What a
  /// program wrote to its standard error is part of the Error.
  static io::Task<Result<>> make_template(std::shared_ptr<Stock> self, sandbox::Host* host,
                                          sandbox::TemplateSpec spec, layers::Layer layer);

  /// How many guests should wait from now on: more are forked in the background, one after the other, and
  /// those beyond are ended.
  void set_wanted(std::size_t wanted);

  /// Ends the template and every guest that waits.
  void clear();

  /// The template forks as it should.
  bool works() const { return template_ && template_->alive() && failed_forks_ < kForksThatMayFail; }
  /// It had a template that works no longer.
  bool broken() const { return template_ && !works(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t wanted() const { return wanted_; }

  const std::string& name() const { return name_; }
  const RunLimits& limits() const { return limits_; }

 private:
  static constexpr int kForksThatMayFail = 3;

  static io::Task<> fill(std::shared_ptr<Stock> self);
  static io::Task<std::optional<Guest>> take_waiting(std::shared_ptr<Stock> self,
                                                     std::optional<Workspace> workspace);
  /// Counts the failures.
  io::Task<Result<Guest>> fork(std::optional<Workspace> workspace);
  io::Task<Result<Guest>> try_fork(std::optional<Workspace> workspace);
  void park(Guest guest);
  void lose(const Conversation* conversation);
  void end(Guest guest);

  const std::string name_;
  const RunLimits limits_;
  const WorkspaceSource workspaces_;
  const Scopes scopes_;
  std::shared_ptr<sandbox::Template> template_;  // shared with forks that are under way
  layers::Lease lease_;
  std::deque<Guest> waiting_;
  std::size_t wanted_ = 0;
  bool filling_ = false;
  int failed_forks_ = 0;  // in a row
};

}  // namespace prims::python

// Everything that goes through descriptors between this program and one guest: standard streams, the private
// descriptor, the line pipe. Reading never stops while the guest lives, so it cannot block; memory stays
// bounded whatever it writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/event.h"
#include "io/scope.h"
#include "io/stream.h"
#include "python/capture.h"
#include "python/protocol.h"
#include "python/runner.h"
#include "sandbox/sandbox.h"

namespace prims::python {

class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  struct Options {
    Bytes shown;
    Bytes kept;
    OutputSink on_output;
    std::function<void()> on_overflow;  ///< once, when a stream goes beyond `kept`; it is not read further
  };

  Conversation(io::Executor executor, Options options);

  /// Makes the pipes and puts the guest's ends into `spec`.
  Result<> connect(sandbox::StartSpec& spec);

  /// Reads what the guest writes from now on.
  void listen();

  /// Waits until the interpreter is up. False: it ended, said something else, or did not say it in time.
  static io::Task<bool> greeted(std::shared_ptr<Conversation> self, Deadline deadline);

  /// Sends the call. Input is written as the program reads it, until finish() at the latest.
  static io::Task<Result<>> hand_over(std::shared_ptr<Conversation> self, Call call, Input input,
                                      Deadline deadline);

  /// The line of the code that runs now, if the guest tells it in time.
  static io::Task<std::optional<int>> ask_line(std::shared_ptr<Conversation> self, sandbox::Sandbox* sandbox,
                                               Deadline deadline);

  /// After the end of every process in the sandbox: reads what is left in the pipes, not longer than until
  /// `deadline`.
  static io::Task<> finish(std::shared_ptr<Conversation> self, Deadline deadline);

  Captured take_output() { return std::move(out_).take(); }
  Captured take_errors() { return std::move(err_).take(); }
  const std::optional<GuestResult>& result() const { return result_; }

  /// What was wrong with the guest's frames; empty when nothing was.
  const std::string& note() const { return note_; }

 private:
  static io::Task<> pump(std::shared_ptr<Conversation> self, Stream which);
  static io::Task<> feed(std::shared_ptr<Conversation> self, std::string input);
  static io::Task<> relay(std::shared_ptr<Conversation> self, UniqueFd source);
  static io::Task<> read_channel(std::shared_ptr<Conversation> self);
  void on_message(const Message& message);

  Options options_;
  io::TaskScope tasks_;
  io::Stream input_, output_, errors_, channel_, lines_;
  io::Stream source_;  ///< readable when there is something to relay
  Capture out_, err_;
  MessageReader reader_;
  io::Event greeted_;  ///< said hello, or will never
  bool hello_ = false;
  bool overflowed_ = false;
  std::optional<GuestResult> result_;
  std::string note_;
};

}  // namespace prims::python

// Everything that goes through descriptors between this program and one guest: standard streams, the private
// descriptor, the line pipe. Reading never stops while a call runs, so the guest cannot block; memory stays
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

/// What becomes of the standard streams.
struct StreamOptions {
  Bytes shown;
  Bytes kept;
  OutputSink on_output;
  std::function<void()> on_overflow;  ///< once, when a stream goes beyond `kept`; it is not read further
};

class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  explicit Conversation(io::Executor executor);

  /// Makes the pipes; the guest's ends are the result.
  Result<sandbox::ForkSpec> connect();

  /// Reads the private descriptor from now on, and waits for the standard streams.
  void listen();

  /// Called once, when the guest has closed the private descriptor or is not understood any more. An empty
  /// function takes it back.
  void on_end(std::function<void()> action) { on_end_ = std::move(action); }

  /// What becomes of the standard streams, which are read from now on: before the guest gets its call. A
  /// guest that waits writes nothing.
  void capture(StreamOptions options);

  /// Waits until the interpreter is up. False: it ended, said something else, or did not say it in time.
  static io::Task<bool> greeted(std::shared_ptr<Conversation> self, Deadline deadline);

  /// The guest is up, and its end of the private descriptor open.
  bool waits() const { return hello_ && !channel_ended_; }

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

  StreamOptions options_;
  io::Event captured_;  ///< there are options
  std::function<void()> on_end_;
  io::TaskScope tasks_;
  io::Stream input_, output_, errors_, channel_, lines_;
  io::Stream source_;  ///< readable when there is something to relay
  Capture out_, err_;
  MessageReader reader_;
  io::Event greeted_;  ///< said hello, or will never
  bool hello_ = false;
  bool channel_ended_ = false;
  bool overflowed_ = false;
  std::optional<GuestResult> result_;
  std::string note_;
};

}  // namespace prims::python

#include "python/conversation.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <csignal>
#include <memory>
#include <span>
#include <utility>

#include "base/log.h"
#include "io/pipe.h"
#include "python/environment.h"
#include "python/running_line.h"

namespace prims::python {
namespace {

constexpr std::uint64_t kRunId = 1;
constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kMaxDump = std::size_t{64} << 10;

/// Not zeroed.
class Buffer {
 public:
  std::span<char> span() const { return {bytes_.get(), kChunk}; }
  const char* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kChunk);
};

/// A descriptor of our own that is readable when `source` is: waiting for it does not touch the flags of
/// `source`. Invalid for a source that never makes one wait, such as a file.
UniqueFd watch(const UniqueFd& source) {
  UniqueFd watcher(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event interest{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(watcher.get(), EPOLL_CTL_ADD, source.get(), &interest) != 0) watcher.reset();
  return watcher;
}

/// Does not wait where the kernel can promise that: somebody who shares the descriptor may have been faster.
ssize_t read_now(const UniqueFd& source, std::span<char> into) {
  const iovec part{.iov_base = into.data(), .iov_len = into.size()};
  const ssize_t got = ::preadv2(source.get(), &part, 1, -1, RWF_NOWAIT);
  if (got >= 0 || errno == EAGAIN || errno == EINTR) return got;
  return ::read(source.get(), into.data(), into.size());
}

int line_signal() {
  return SIGRTMAX - 2;
}

}  // namespace

Conversation::Conversation(io::Executor executor)
    : tasks_(std::move(executor)), out_(Bytes{0}), err_(Bytes{0}) {}

Result<sandbox::ForkSpec> Conversation::connect() {
  PRIMS_ASSIGN_OR_RETURN(io::Pipe input, io::make_pipe());
  PRIMS_ASSIGN_OR_RETURN(io::Pipe output, io::make_pipe());
  PRIMS_ASSIGN_OR_RETURN(io::Pipe errors, io::make_pipe());
  PRIMS_ASSIGN_OR_RETURN(io::Pipe lines, io::make_pipe());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
  UniqueFd channel(ends[0]);
  sandbox::ForkSpec spec;
  spec.standard_input = std::move(input.read);
  spec.standard_output = std::move(output.write);
  spec.standard_error = std::move(errors.write);
  spec.extra.emplace_back(ends[1]);
  spec.extra.push_back(std::move(lines.write));
  input_ = io::Stream(std::move(input.write));
  output_ = io::Stream(std::move(output.read));
  errors_ = io::Stream(std::move(errors.read));
  lines_ = io::Stream(std::move(lines.read));
  channel_ = io::Stream(std::move(channel));
  return spec;
}

void Conversation::listen() {
  tasks_.spawn(read_channel(shared_from_this()), "private descriptor of a run");
  tasks_.spawn(pump(shared_from_this(), Stream::out), "standard output of a run");
  tasks_.spawn(pump(shared_from_this(), Stream::err), "standard error of a run");
}

void Conversation::capture(StreamOptions options) {
  options_ = std::move(options);
  out_ = Capture(options_.shown);
  err_ = Capture(options_.shown);
  captured_.set();
}

io::Task<> Conversation::pump(std::shared_ptr<Conversation> self, Stream which) {
  io::Stream& stream = which == Stream::out ? self->output_ : self->errors_;
  Capture& capture = which == Stream::out ? self->out_ : self->err_;
  auto spoken = co_await stream.readable(Deadline::never());
  if (!spoken) co_return;
  auto captured = co_await self->captured_.wait();
  if (!captured || !self->options_.on_overflow) co_return;
  const Buffer buffer;  // only now: many a stream stays silent
  for (;;) {
    auto size = co_await stream.read_some(buffer.span(), Deadline::never());
    if (!size || *size == 0) co_return;
    const std::string_view bytes(buffer.data(), *size);
    capture.add(bytes);
    if (self->options_.on_output) self->options_.on_output(which, bytes);
    if (capture.total() <= self->options_.kept.count) continue;
    if (!std::exchange(self->overflowed_, true)) self->options_.on_overflow();
    co_return;
  }
}

io::Task<> Conversation::feed(std::shared_ptr<Conversation> self, std::string input) {
  // A program that reads no input, or not all of it, is no failure.
  [[maybe_unused]] auto written = co_await self->input_.write_all(input, Deadline::never());
  self->input_.close();
}

io::Task<> Conversation::relay(std::shared_ptr<Conversation> self, UniqueFd source) {
  UniqueFd watcher = watch(source);
  const bool may_wait = watcher.valid();
  self->source_ = io::Stream(std::move(watcher));
  const Buffer buffer;
  for (;;) {
    if (may_wait) {
      auto ready = co_await self->source_.readable(Deadline::never());
      if (!ready) break;
    }
    const ssize_t got =
        may_wait ? read_now(source, buffer.span()) : ::read(source.get(), buffer.span().data(), kChunk);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) log::warning("standard input: {}", fail_errno("read").error().message);
    if (got <= 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    auto written = co_await self->input_.write_all(bytes, Deadline::never());
    if (!written) break;
  }
  self->input_.close();
}

io::Task<> Conversation::read_channel(std::shared_ptr<Conversation> self) {
  const Buffer buffer;
  for (;;) {
    auto size = co_await self->channel_.read_some(buffer.span(), Deadline::never());
    if (!size || *size == 0) break;
    self->reader_.feed(std::string_view(buffer.data(), *size));
    auto message = self->reader_.next();
    for (; message && *message; message = self->reader_.next()) self->on_message(**message);
    if (message) continue;
    if (self->note_.empty()) self->note_ = message.error().message;
    break;
  }
  self->channel_ended_ = true;
  self->greeted_.set();
  if (auto on_end = std::exchange(self->on_end_, nullptr)) on_end();
}

void Conversation::on_message(const Message& message) {
  switch (message.type) {
    case FrameType::hello:
      hello_ = true;
      return greeted_.set();
    case FrameType::refused:
      note_ = json::string_field(message.fields, "reason").value_or("refused without a reason");
      return;
    case FrameType::result:
      if (message.id == kRunId && !result_) result_ = read_result(message.fields);
      return;
    default:
      return;
  }
}

io::Task<bool> Conversation::greeted(std::shared_ptr<Conversation> self, Deadline deadline) {
  [[maybe_unused]] auto woken = co_await self->greeted_.wait(deadline);
  co_return self->hello_;
}

io::Task<Result<>> Conversation::hand_over(std::shared_ptr<Conversation> self, Call call, Input input,
                                           Deadline deadline) {
  const std::string frame = encode(run_message(kRunId, std::move(call)));
  auto written = co_await self->channel_.write_all(frame, deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(written));
  if (auto* source = std::get_if<UniqueFd>(&input)) {
    self->tasks_.spawn(relay(self, std::move(*source)), "standard input of a run");
  } else if (auto& text = std::get<std::string>(input); !text.empty()) {
    self->tasks_.spawn(feed(self, std::move(text)), "standard input of a run");
  } else {
    self->input_.close();
  }
  co_return Result<>();
}

io::Task<std::optional<int>> Conversation::ask_line(std::shared_ptr<Conversation> self,
                                                    sandbox::Sandbox* sandbox, Deadline deadline) {
  sandbox->signal(line_signal());
  std::string dump;
  const Buffer buffer;
  while (dump.size() < kMaxDump) {
    auto size = co_await self->lines_.read_some(buffer.span(), deadline);
    if (!size || *size == 0) break;
    dump.append(buffer.data(), *size);
    if (const auto line = running_line(dump, kProgramFile)) co_return line;
  }
  co_return std::nullopt;
}

io::Task<> Conversation::finish(std::shared_ptr<Conversation> self, Deadline deadline) {
  self->captured_.set();
  self->input_.close();
  self->source_.close();
  auto joined = co_await self->tasks_.join(deadline);
  if (joined) co_return;
  self->output_.close();
  self->errors_.close();
  self->channel_.close();
  joined = co_await self->tasks_.join();
}

}  // namespace prims::python

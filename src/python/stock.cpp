#include "python/stock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "io/pipe.h"
#include "io/stream.h"
#include "io/wait.h"
#include "python/environment.h"

namespace prims::python {
namespace {

/// For the answer of the call whose guest is to be replaced.
constexpr Milliseconds kHeadStart{2};
constexpr Bytes kKeptComplaint = kib(4);
constexpr std::size_t kShownLines = 5;

/// What a template writes to its output descriptors: read as long as it lives, kept for the log.
struct Complaint {
  io::Stream source;
  Capture kept{kKeptComplaint};
  io::Event ended;

  std::string text() {
    const Captured said = std::move(kept).take();
    return to_utf8(last_lines(said.head + said.tail, kShownLines));
  }
};

io::Task<> read_all(std::shared_ptr<Complaint> complaint) {
  std::array<char, 1024> buffer{};
  for (;;) {
    auto size = co_await complaint->source.read_some(buffer, Deadline::never());
    if (!size || *size == 0) break;
    complaint->kept.add({buffer.data(), *size});
  }
  complaint->ended.set();
}

Result<std::shared_ptr<Complaint>> connect(sandbox::StartSpec& spec) {
  PRIMS_ASSIGN_OR_RETURN(io::Pipe pipe, io::make_pipe());
  auto complaint = std::make_shared<Complaint>();
  complaint->source = io::Stream(std::move(pipe.read));
  spec.standard_output = UniqueFd(::fcntl(pipe.write.get(), F_DUPFD_CLOEXEC, 3));
  spec.standard_error = std::move(pipe.write);
  if (!spec.standard_output) return fail_errno("dup");
  return complaint;
}

}  // namespace

Stock::Stock(std::string name, RunLimits limits, WorkspaceSource workspaces, Scopes scopes)
    : name_(std::move(name)), limits_(limits), workspaces_(std::move(workspaces)), scopes_(scopes) {}

io::Task<std::optional<Arrival>> Stock::take(std::shared_ptr<Stock> self,
                                             std::optional<Workspace> workspace) {
  Path path = Path::pool;
  auto guest = co_await take_waiting(self, workspace);
  if (!guest && self->works()) {
    path = Path::fork;
    auto forked = co_await self->fork(workspace);
    if (forked) guest = *std::move(forked);
  }
  if (!guest) co_return std::nullopt;
  if (!workspace) workspace = guest->workspace;
  co_return Arrival{*std::move(guest), *std::move(workspace), path};
}

io::Task<std::optional<Guest>> Stock::take_waiting(std::shared_ptr<Stock> self,
                                                   std::optional<Workspace> workspace) {
  while (!self->waiting_.empty()) {
    Guest guest = std::move(self->waiting_.front());
    self->waiting_.pop_front();
    guest.conversation->on_end({});
    if (workspace) {
      const std::vector<sandbox::Attachment> attachments{workspace_attachment(*workspace)};
      auto attached = co_await guest.sandbox->attach(attachments);
      if (attached) co_return guest;
      log::debug("python: a waiting guest was of no use: {}", attached.error().message);
    } else if (::access(guest.workspace.directory.c_str(), F_OK) == 0) {
      co_return guest;  // else somebody has tidied up the state directory meanwhile
    }
    self->end(std::move(guest));
  }
  co_return std::nullopt;
}

io::Task<Result<>> Stock::make_template(std::shared_ptr<Stock> self, sandbox::Host* host,
                                        sandbox::TemplateSpec spec, layers::Layer layer) {
  PRIMS_CO_ASSIGN_OR_RETURN(const std::shared_ptr<Complaint> complaint, connect(spec.start));
  self->scopes_.makers->spawn(read_all(complaint), "output of a template");
  auto made = co_await host->make_template(std::move(spec));
  if (!made) {
    [[maybe_unused]] auto ended = co_await complaint->ended.wait(Deadline::after(kDrainTime));
    const std::string said = complaint->text();
    co_return fail(made.error().kind,
                   fmt::format("{}{}{}", made.error().message, said.empty() ? "" : "; it said: ", said));
  }
  self->template_ = *std::move(made);
  self->lease_ = std::move(layer.lease);
  self->failed_forks_ = 0;
  co_return Result<>();
}

void Stock::set_wanted(std::size_t wanted) {
  wanted_ = wanted;
  while (waiting_.size() > wanted_) {
    end(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (filling_ || waiting_.size() == wanted_ || !works()) return;
  filling_ = true;
  scopes_.makers->spawn(fill(shared_from_this()), "fork guests ahead");
}

void Stock::clear() {
  set_wanted(0);
  template_.reset();
  lease_.reset();
}

io::Task<> Stock::fill(std::shared_ptr<Stock> self) {
  [[maybe_unused]] auto slept = co_await io::sleep_until(Deadline::after(kHeadStart));
  while (self->works() && self->waiting_.size() < self->wanted_) {
    const std::shared_ptr<sandbox::Template> from = self->template_;
    auto forked = co_await self->fork(std::nullopt);
    if (!forked) break;
    if (self->template_ == from && self->waiting_.size() < self->wanted_) {
      self->park(*std::move(forked));
    } else {
      self->end(*std::move(forked));
    }
  }
  self->filling_ = false;
}

/// The caller holds this object.
io::Task<Result<Guest>> Stock::fork(std::optional<Workspace> workspace) {
  const std::shared_ptr<sandbox::Template> from = template_;
  auto forked = co_await try_fork(std::move(workspace));
  if (from == template_) {
    const bool full = !forked && forked.error().kind == Kind::exhausted;
    failed_forks_ = forked || full ? 0 : failed_forks_ + 1;
  }
  if (!forked) log::debug("python: no fork of a template: {}", forked.error().message);
  co_return forked;
}

io::Task<Result<Guest>> Stock::try_fork(std::optional<Workspace> workspace) {
  const std::shared_ptr<sandbox::Template> from = template_;
  if (!workspace) {
    auto made = co_await workspaces_();
    PRIMS_CO_ASSIGN_OR_RETURN(workspace, std::move(made));
  }
  co_return co_await fork_guest(from, *std::move(workspace));
}

void Stock::park(Guest guest) {
  if (!guest.conversation->waits()) return end(std::move(guest));
  guest.conversation->on_end([self = weak_from_this(), who = guest.conversation.get()] {
    if (const auto stock = self.lock()) stock->lose(who);
  });
  waiting_.push_back(std::move(guest));
}

void Stock::lose(const Conversation* conversation) {
  const auto found = std::ranges::find_if(
      waiting_, [&](const Guest& guest) { return guest.conversation.get() == conversation; });
  if (found == waiting_.end()) return;
  Guest guest = std::move(*found);
  waiting_.erase(found);
  log::debug("python: a guest ended while it waited");
  end(std::move(guest));
}

void Stock::end(Guest guest) {
  scopes_.enders->spawn(end_guest(std::move(guest), lease_), "end a guest that gets no call");
}

}  // namespace prims::python

#include "python/guest.h"

#include <cerrno>
#include <utility>

#include "python/environment.h"

namespace prims::python {
namespace {

/// For the interpreter to come up; a busy machine may be slow.
constexpr Milliseconds kStartTime{30'000};
/// The same for a fork, which has little left to do.
constexpr Milliseconds kForkTime{10'000};

void put(sandbox::ForkSpec ends, sandbox::StartSpec& spec) {
  spec.standard_input = std::move(ends.standard_input);
  spec.standard_output = std::move(ends.standard_output);
  spec.standard_error = std::move(ends.standard_error);
  spec.extra = std::move(ends.extra);
}

}  // namespace

io::Task<Result<bool>> start_guest(const Guest* guest, std::vector<sandbox::Attachment> attachments,
                                   sandbox::StartSpec spec, StreamOptions streams) {
  auto attached = co_await guest->sandbox->attach(std::move(attachments));
  PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
  PRIMS_CO_ASSIGN_OR_RETURN(sandbox::ForkSpec ends, guest->conversation->connect());
  put(std::move(ends), spec);
  auto started = co_await guest->sandbox->start(std::move(spec));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  guest->conversation->capture(std::move(streams));
  guest->conversation->listen();
  const Deadline deadline = Deadline::after(kStartTime);
  const bool greeted = co_await Conversation::greeted(guest->conversation, deadline);
  if (!greeted && deadline.passed()) guest->sandbox->kill(sandbox::SetupFailed{"start of Python", ETIMEDOUT});
  co_return greeted;
}

io::Task<Result<Guest>> fork_guest(std::shared_ptr<sandbox::Template> from, Workspace workspace) {
  const io::Executor executor = co_await io::this_executor;
  Guest guest{std::move(workspace), nullptr, std::make_shared<Conversation>(executor)};
  PRIMS_CO_ASSIGN_OR_RETURN(sandbox::ForkSpec ends, guest.conversation->connect());
  ends.attachments.push_back(workspace_attachment(guest.workspace));
  auto forked = co_await from->fork(std::move(ends));
  PRIMS_CO_ASSIGN_OR_RETURN(guest.sandbox, std::move(forked));
  guest.conversation->listen();
  const bool greeted = co_await Conversation::greeted(guest.conversation, Deadline::after(kForkTime));
  if (greeted) co_return guest;
  std::string note = guest.conversation->note();
  co_await end_guest(std::move(guest), nullptr);
  co_return fail(Kind::unavailable, note.empty() ? "it ended, or said nothing in time" : std::move(note));
}

io::Task<> end_guest(Guest guest, [[maybe_unused]] layers::Lease lease) {
  guest.conversation->on_end({});
  guest.sandbox->kill(sandbox::Cancelled{});
  [[maybe_unused]] const sandbox::Outcome outcome = co_await guest.sandbox->finish();
  co_await Conversation::finish(guest.conversation, Deadline::after(kDrainTime));
}

}  // namespace prims::python

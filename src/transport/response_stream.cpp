#include "transport/response_stream.h"

#include <utility>

namespace prims::transport {

void ResponseStream::progress(std::string message) {
  has_progress_ = true;
  log_.append(std::move(message), mcp::EventLog::Keep::while_room);
  changed_.set();
}

void ResponseStream::done(std::optional<std::string> response) {
  --open_calls_;
  if (response) log_.append(*std::move(response), mcp::EventLog::Keep::always);
  changed_.set();
}

void ResponseStream::add_response(std::string message) {
  log_.append(std::move(message), mcp::EventLog::Keep::always);
}

std::vector<std::string> ResponseStream::responses() const {
  std::vector<std::string> out;
  for (const auto& event : log_.events()) {
    if (event.keep == mcp::EventLog::Keep::always) out.push_back(event.message);
  }
  return out;
}

std::uint64_t ResponseStream::take_over() {
  changed_.set();
  return ++turn_;
}

void StreamStore::keep(const std::string& session, std::shared_ptr<ResponseStream> stream,
                       Clock::time_point now) {
  collect(now);
  kept_.push_back({session, std::move(stream), std::nullopt});
}

std::shared_ptr<ResponseStream> StreamStore::find(const std::string& session, std::uint64_t number) const {
  for (const Kept& kept : kept_) {
    if (kept.stream->number() == number && kept.session == session) return kept.stream;
  }
  return nullptr;
}

void StreamStore::drop(const std::string& session) {
  kept_.remove_if([&session](const Kept& kept) { return kept.session == session; });
}

void StreamStore::collect(Clock::time_point now) {
  std::size_t finished = 0;
  for (Kept& kept : kept_) {
    if (!kept.stream->finished()) continue;
    ++finished;
    if (!kept.finished) kept.finished = now;
  }
  // Oldest first, until few enough are left. Streams whose calls still run are bounded by the calls.
  for (auto it = kept_.begin(); it != kept_.end();) {
    const bool old = it->finished && now - *it->finished > kKeepFinished;
    const bool surplus = it->finished && finished > kMostFinished;
    if (old || surplus) {
      --finished;
      it = kept_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace prims::transport

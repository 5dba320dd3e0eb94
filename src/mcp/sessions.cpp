#include "mcp/sessions.h"

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace prims::mcp {
namespace {

constexpr std::size_t kIdBytes = 24;

/// Whether the text can be an id of ours at all; checked before it is used for anything.
bool well_formed(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return id.size() >= 22 && id.size() <= 64 && std::ranges::all_of(id, allowed);
}

}  // namespace

const Session* Sessions::open(std::string version, std::string client_name, const Principal& principal,
                              Clock::time_point now) {
  expire(now);
  if (sessions_.size() >= limits_.most && !make_room()) return nullptr;
  Session session{random_token(kIdBytes), std::move(version), std::move(client_name), principal.name, now};
  std::string id = session.id;
  return &sessions_.emplace(std::move(id), std::move(session)).first->second;
}

const Session* Sessions::use(std::string_view id, const Principal& principal, Clock::time_point now) {
  if (!well_formed(id)) return nullptr;
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.principal != principal.name) return nullptr;
  if (now - found->second.last_used > limits_.idle && !busy_(found->first)) {
    close(found->first);
    return nullptr;
  }
  found->second.last_used = now;
  return &found->second;
}

void Sessions::close(const std::string& id) {
  auto node = sessions_.extract(id);
  if (!node.empty() && ended_) ended_(node.key());
}

void Sessions::expire(Clock::time_point now) {
  std::vector<std::string> gone;
  for (const auto& [id, session] : sessions_) {
    if (now - session.last_used > limits_.idle && !busy_(id)) gone.push_back(id);
  }
  for (const std::string& id : gone) close(id);
}

bool Sessions::make_room() {
  const Session* oldest = nullptr;
  for (const auto& [id, session] : sessions_) {
    if (busy_(id)) continue;
    if (oldest == nullptr || session.last_used < oldest->last_used) oldest = &session;
  }
  if (oldest == nullptr) return false;
  close(std::string(oldest->id));
  return true;
}

}  // namespace prims::mcp

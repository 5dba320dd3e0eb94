#include "http/sse.h"

#include <algorithm>
#include <charconv>

namespace prims::http {

std::string encode(const SseEvent& event) {
  std::string out;
  if (!event.event.empty()) out.append("event: ").append(event.event).append("\n");
  if (event.id) out.append("id: ").append(*event.id).append("\n");
  if (event.retry) out.append("retry: ").append(std::to_string(*event.retry)).append("\n");
  std::string_view rest = event.data;
  for (;;) {
    const auto end = rest.find_first_of("\r\n");
    out.append("data: ").append(rest.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out.append("\n");
  return out;
}

std::string encode_comment(std::string_view text) {
  std::string out = ": ";
  std::ranges::replace_copy_if(
      text, std::back_inserter(out), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return out + "\n\n";
}

Result<> SseParser::feed(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  for (std::size_t at = 0; at < bytes.size();) {
    if (after_carriage_return_ && bytes[at] == '\n') ++at;
    after_carriage_return_ = false;
    const std::size_t end = bytes.find_first_of("\r\n", at);
    line_.append(bytes.substr(at, end == std::string_view::npos ? end : end - at));
    if (line_.size() + current_.data.size() > limit_)
      return fail(Kind::exhausted, "a server-sent event is too large");
    if (end == std::string_view::npos) break;
    after_carriage_return_ = bytes[end] == '\r';
    std::string_view line = line_;
    if (at_start_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    at_start_ = false;
    take_line(line);
    line_.clear();
    at = end + 1;
  }
  return {};
}

void SseParser::take_line(std::string_view line) {
  if (line.empty()) {
    if (has_data_) {
      current_.data.pop_back();  // the line feed that each data line adds
      ready_.push_back(std::move(current_));
    }
    current_ = {};
    has_data_ = false;
    return;
  }
  const auto colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    current_.data.append(value).append("\n");
    has_data_ = true;
  } else if (name == "event") {
    current_.event = value;
  } else if (name == "id" && !value.contains('\0')) {
    current_.id = value;
  } else if (name == "retry") {
    int milliseconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    if (error == std::errc() && end == value.data() + value.size() && milliseconds >= 0)
      current_.retry = milliseconds;
  }
}

std::optional<SseEvent> SseParser::next() {
  if (ready_.empty()) return std::nullopt;
  std::optional<SseEvent> event(std::move(ready_.front()));
  ready_.pop_front();
  return event;
}

io::Task<Result<std::optional<SseEvent>>> SseReader::next(Deadline deadline) {
  for (;;) {
    if (auto event = parser_.next()) co_return event;
    auto piece = co_await response_.read_some(deadline);
    PRIMS_CO_RETURN_ON_ERROR(piece);
    if (piece->empty()) co_return std::optional<SseEvent>();
    PRIMS_CO_RETURN_ON_ERROR(parser_.feed(*piece));
  }
}

}  // namespace prims::http

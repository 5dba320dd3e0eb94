#include "transport/lines.h"

#include <array>
#include <utility>

namespace prims::transport {
namespace {

constexpr std::size_t kReadAtOnce = 64 << 10;

}  // namespace

std::optional<LineReader::Line> LineReader::take_line() {
  const std::size_t end = buffer_.find('\n', scanned_);
  scanned_ = end == std::string::npos ? buffer_.size() : end;
  if (skipping_) {
    if (end == std::string::npos) {
      buffer_.clear();
      start_ = scanned_ = 0;
      return std::nullopt;
    }
    skipping_ = false;
    start_ = scanned_ = end + 1;
    return take_line();
  }
  if (scanned_ - start_ > limit_.count) {
    skipping_ = end == std::string::npos;
    start_ = scanned_ = end == std::string::npos ? buffer_.size() : end + 1;
    return Line{Line::Kind::too_long, ""};
  }
  if (end == std::string::npos) return std::nullopt;
  Line line{Line::Kind::whole, buffer_.substr(start_, end - start_)};
  start_ = scanned_ = end + 1;
  return line;
}

io::Task<Result<std::optional<LineReader::Line>>> LineReader::next() {
  std::array<char, kReadAtOnce> chunk;  // NOLINT: filled by read_some
  for (;;) {
    if (auto line = take_line()) co_return line;
    if (at_end_) break;
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
    auto got = co_await stream_.read_some(chunk, Deadline::never());
    PRIMS_CO_ASSIGN_OR_RETURN(const std::size_t size, std::move(got));
    if (size == 0) at_end_ = true;
    buffer_.append(chunk.data(), size);
  }
  if (skipping_ || start_ == buffer_.size()) co_return std::nullopt;
  Line last{Line::Kind::whole, buffer_.substr(start_)};
  start_ = scanned_ = buffer_.size();
  co_return last;
}

io::Task<Result<>> LineWriter::send(std::string line) {
  while (!closed_ && queue_.size() >= kRoom) {
    room_.reset();
    auto woken = co_await room_.wait();
    PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
  }
  if (closed_) co_return fail(Kind::cancelled, "the writer is closed");
  push(std::move(line));
  co_return Result<>();
}

void LineWriter::push(std::string line) {
  if (closed_) return;
  line += '\n';
  queue_.push_back(std::move(line));
  changed_.set();
}

void LineWriter::offer(std::string line) {
  if (queue_.size() < kRoom) push(std::move(line));
}

void LineWriter::close() {
  closed_ = true;
  changed_.set();
  room_.set();
}

io::Task<Result<>> LineWriter::run() {
  while (!closed_ || !queue_.empty()) {
    if (queue_.empty()) {
      changed_.reset();
      auto woken = co_await changed_.wait();
      PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
      continue;
    }
    const std::string line = std::move(queue_.front());
    queue_.pop_front();
    room_.set();
    auto written = co_await stream_.write_all(line, Deadline::never());
    PRIMS_CO_RETURN_ON_ERROR(std::move(written));
  }
  co_return Result<>();
}

}  // namespace prims::transport

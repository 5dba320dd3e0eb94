#include "http/serialize.h"

#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace prims::http {
namespace {

bool is_framing(std::string_view name) {
  return iequals(name, "Content-Length") || iequals(name, "Transfer-Encoding") ||
         iequals(name, "Connection") || iequals(name, "Keep-Alive") || iequals(name, "Date");
}

void append_fields(std::string& out, const Headers& headers) {
  for (const Field& field : headers) {
    if (is_framing(field.name)) continue;
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
}

/// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second.
const std::string& date() {
  thread_local std::time_t made_at = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != made_at) {
    made_at = now;
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char buffer[40];
    text.assign(buffer, std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return text;
}

}  // namespace

std::string response_head(int status, const Headers& headers, HeadOptions options) {
  std::string out;
  out.reserve(512);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  append_fields(out, headers);
  if (status >= 200) out.append("Date: ").append(date()).append("\r\n");
  if (options.framing == Framing::length) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", options.length);
  }
  if (options.framing == Framing::chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (options.close) out.append("Connection: close\r\n");
  out.append("\r\n");
  return out;
}

std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         const Headers& headers, std::optional<std::uint64_t> length) {
  std::string out;
  out.reserve(512);
  fmt::format_to(std::back_inserter(out), "{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host);
  append_fields(out, headers);
  if (length) fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", *length);
  out.append("\r\n");
  return out;
}

std::string chunk_head(std::size_t size) {
  return fmt::format("{:x}\r\n", size);
}

}  // namespace prims::http

#include "egress/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "egress/page.h"

namespace prims::egress {
namespace {

constexpr int kMaxRedirects = 5;
constexpr Bytes kDiscarded = kib(64);  // of a redirect's body

// No Accept-Encoding: pages have to be read here, and package files are compressed already.
constexpr std::string_view kPageFields[] = {"Accept", "Cache-Control", "If-None-Match", "If-Modified-Since",
                                            "User-Agent"};
constexpr std::string_view kFileFields[] = {"Accept",   "Cache-Control", "If-None-Match", "If-Modified-Since",
                                            "If-Range", "Range",         "User-Agent"};
constexpr std::string_view kAnswerFields[] = {"Content-Type", "ETag", "Last-Modified", "Cache-Control",
                                              "Expires",      "Age",  "Vary",          "Retry-After"};
constexpr std::string_view kStreamFields[] = {"Content-Length", "Content-Range", "Accept-Ranges",
                                              "Content-Encoding"};

void copy_fields(const http::Headers& from, http::Headers& to, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (const std::string_view value : from.all(name)) to.add(std::string(name), std::string(value));
  }
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum class PageKind { json, html, other };

PageKind page_kind(const http::Headers& headers) {
  const std::string_view type = headers.get("Content-Type").value_or("");
  const std::string_view bare = type.substr(0, type.find_first_of("; \t"));
  if (http::iequals(bare, "application/vnd.pypi.simple.v1+json")) return PageKind::json;
  if (http::iequals(bare, "application/json")) return PageKind::json;
  if (http::iequals(bare, "application/vnd.pypi.simple.v1+html") || http::iequals(bare, "text/html"))
    return PageKind::html;
  return PageKind::other;
}

http::Response sentence(int status, const std::string& text) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = text + "\n"};
}

int status_for(Kind kind) {
  if (kind == Kind::denied) return 403;
  return kind == Kind::timed_out ? 504 : 502;
}

}  // namespace

Relay::Relay(BrokerOptions options, std::string local_origin, std::shared_ptr<Gate> gate)
    : options_(std::move(options)),
      local_origin_(std::move(local_origin)),
      gate_(std::move(gate)),
      client_({.extra_ca_file = options_.extra_ca_file, .idle_connections = 16}) {}

io::Task<> Relay::handle(std::shared_ptr<Relay> self, http::Request request, http::Responder responder) {
  const std::string method = request.method;
  const std::string target = request.target;
  const auto answered = co_await answer(self, std::move(request), responder);
  if (answered || answered.error().kind == Kind::cancelled) co_return;
  if (answered.error().kind == Kind::denied) {
    self->gate_->note_refusal(method, target, answered.error().message);
  } else {
    self->gate_->note_upstream_error(answered.error().message);
  }
  if (responder.started()) {
    responder.abort();
  } else {
    http::Response response = sentence(status_for(answered.error().kind), answered.error().message);
    [[maybe_unused]] const auto sent = co_await responder.send(std::move(response));
  }
}

io::Task<Result<>> Relay::answer(std::shared_ptr<Relay> self, http::Request request,
                                 http::Responder responder) {
  PRIMS_CO_ASSIGN_OR_RETURN(const Target target, read_target(request.method, request.target));
  const auto* const page = std::get_if<PageTarget>(&target);
  auto url =
      page != nullptr ? self->gate_->page_url(*page) : self->gate_->file_url(std::get<FileTarget>(target));
  PRIMS_CO_RETURN_ON_ERROR(url);
  http::Headers headers;
  if (page != nullptr) {
    copy_fields(request.headers, headers, kPageFields);
  } else {
    copy_fields(request.headers, headers, kFileFields);
  }
  const Deadline deadline = Deadline::after(self->options_.answer);
  auto got = co_await fetch(self, std::move(*url), request.method, std::move(headers), deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(Fetched fetched, std::move(got));
  const bool is_page = page != nullptr && fetched.response.status() == 200 &&
                       page_kind(fetched.response.headers()) != PageKind::other;
  if (is_page && request.method == "HEAD")
    co_return co_await send_page_head(std::move(fetched), std::move(responder));
  if (is_page) co_return co_await send_page(self, std::move(fetched), std::move(responder), deadline);
  co_return co_await stream(self, std::move(fetched.response), std::move(responder), deadline);
}

io::Task<Result<Relay::Fetched>> Relay::fetch(std::shared_ptr<Relay> self, http::Url url, std::string method,
                                              http::Headers headers, Deadline deadline) {
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    PRIMS_CO_ASSIGN_OR_RETURN(auto passage, self->gate_->passage(url));
    http::ClientRequest request;
    request.method = method;
    request.url = url;
    request.url.user_info = std::move(passage.user_info);
    request.headers = headers;
    request.allow_address = std::move(passage.allow_address);
    request.deadline = self->stall(deadline);
    auto got = co_await self->client_.send(std::move(request));
    PRIMS_CO_ASSIGN_OR_RETURN(http::ClientResponse response, std::move(got));
    self->gate_->note_upstream_answer();
    const auto location = response.headers().get("Location");
    if (!is_redirect(response.status()) || !location) co_return Fetched{std::move(response), std::move(url)};
    const auto next = http::resolve(url, *location);
    if (!next)
      co_return fail(Kind::unavailable,
                     fmt::format("{} redirects to something that is not a URL", url.origin()));
    if (url.scheme == "https" && next->scheme != "https") {
      co_return fail(Kind::denied, fmt::format("{} redirects from https to http", url.origin()));
    }
    // Read, so that the connection can be used again.
    [[maybe_unused]] const auto discarded = co_await response.read_all(kDiscarded, self->stall(deadline));
    url = *next;
  }
  co_return fail(Kind::unavailable, fmt::format("{} redirects too often", url.origin()));
}

io::Task<Result<>> Relay::send_page(std::shared_ptr<Relay> self, Fetched fetched, http::Responder responder,
                                    Deadline deadline) {
  http::Response answer;
  copy_fields(fetched.response.headers(), answer.headers, kAnswerFields);
  if (fetched.response.headers().count("Content-Encoding") > 0) {
    co_return fail(Kind::unavailable, "the package index sent a compressed page unasked");
  }
  std::string page;
  for (;;) {
    auto piece = co_await fetched.response.read_some(self->stall(deadline));
    PRIMS_CO_RETURN_ON_ERROR(piece);
    if (piece->empty()) break;
    if (page.size() + piece->size() > self->options_.page.count) {
      co_return fail(Kind::exhausted, "the index page is too large");
    }
    page.append(*piece);
  }
  PRIMS_CO_ASSIGN_OR_RETURN(answer.body, self->rewrite(std::move(page), fetched));
  co_return co_await responder.send(std::move(answer));
}

/// Without a length: the rewritten page has another one.
io::Task<Result<>> Relay::send_page_head(Fetched fetched, http::Responder responder) {
  http::Response head;
  copy_fields(fetched.response.headers(), head.headers, kAnswerFields);
  co_return co_await responder.open(std::move(head));
}

Result<std::string> Relay::rewrite(std::string page, const Fetched& fetched) const {
  const http::Address index_address = fetched.response.peer();
  const Replace replace = [&](const http::Url& file) -> std::optional<std::string> {
    if (!gate_->learn(file, fetched.url, index_address)) return std::nullopt;
    return local_origin_ + file_path(file);
  };
  if (page_kind(fetched.response.headers()) == PageKind::html)
    return rewrite_html(page, fetched.url, replace);
  auto rewritten = rewrite_json(page, fetched.url, replace);
  if (!rewritten) return fail(Kind::unavailable, "bad index page: " + rewritten.error().message);
  return rewritten;
}

io::Task<Result<>> Relay::stream(std::shared_ptr<Relay> self, http::ClientResponse response,
                                 http::Responder responder, Deadline deadline) {
  http::Response head;
  head.status = response.status();
  copy_fields(response.headers(), head.headers, kAnswerFields);
  copy_fields(response.headers(), head.headers, kStreamFields);
  auto written = co_await responder.open(std::move(head));
  PRIMS_CO_RETURN_ON_ERROR(std::move(written));
  std::uint64_t total = 0;
  for (;;) {
    auto piece = co_await response.read_some(self->stall(deadline));
    PRIMS_CO_RETURN_ON_ERROR(piece);
    if (piece->empty()) break;
    total += piece->size();
    if (total > self->options_.response.count)
      co_return fail(Kind::exhausted, "the package file is too large");
    written = co_await responder.write(std::move(*piece));
    PRIMS_CO_RETURN_ON_ERROR(std::move(written));
  }
  co_return co_await responder.finish();
}

Deadline Relay::stall(Deadline limit) const {
  return Deadline{std::min(limit.at, Clock::now() + options_.stall)};
}

}  // namespace prims::egress

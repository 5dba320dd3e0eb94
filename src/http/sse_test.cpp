#include "http/sse.h"

#include <gtest/gtest.h>

#include "http/url.h"

namespace prims::http {
namespace {

std::vector<SseEvent> parse(std::string_view text, std::size_t step) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (std::size_t at = 0; at < text.size(); at += step) {
    EXPECT_TRUE(parser.feed(text.substr(at, step)).has_value());
    while (auto event = parser.next()) events.push_back(std::move(*event));
  }
  return events;
}

TEST(Sse, ReadsEveryShapeInPiecesOfAnySize) {
  const std::string_view text =
      "\xEF\xBB\xBF: hello\n\n"
      "data: one\n\n"
      "event: greet\r\ndata:two\r\ndata:  lines\r\n\r\n"
      "id: 7\rretry: 250\rdata\r\r"
      "event: dropped without data\n\n"
      "retry: soon\nunknown: x\ndata: {\"a\":1}\n\n"
      "data: unfinished";
  for (const std::size_t step : {1U, 2U, 3U, 7U, 1000U}) {
    const auto events = parse(text, step);
    ASSERT_EQ(events.size(), 4U) << step;
    EXPECT_EQ(events[0].data, "one");
    EXPECT_EQ(events[1].event, "greet");
    EXPECT_EQ(events[1].data, "two\n lines");
    EXPECT_EQ(events[2].data, "");
    EXPECT_EQ(events[2].id, "7");
    EXPECT_EQ(events[2].retry, 250);
    EXPECT_EQ(events[3].data, "{\"a\":1}");
    EXPECT_FALSE(events[3].retry.has_value());
  }
}

TEST(Sse, EncodesWhatItReads) {
  const SseEvent event{.event = "message", .data = "a\nb\r\nc\rd", .id = "1", .retry = 5};
  const auto events = parse(encode_comment("still\nhere") + encode(event), 5);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data, "a\nb\nc\nd");
  EXPECT_EQ(events[0].id, "1");
  EXPECT_EQ(events[0].retry, 5);
  EXPECT_EQ(encode({.data = "x"}), "data: x\n\n");
}

TEST(Sse, BoundsOneEvent) {
  SseParser parser(kib(1));
  const std::string line = "data: " + std::string(100, 'x') + "\n";
  Result<> fed;
  for (int i = 0; fed && i < 100; ++i) fed = parser.feed(line);
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().kind, Kind::exhausted);
}

TEST(Url, ReadsItsParts) {
  const auto url = parse_url("HTTPS://user:p%40ss@Example.ORG:8443/a/b?c=d#frag");
  ASSERT_TRUE(url.has_value());
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->user_info, "user:p%40ss");
  EXPECT_EQ(url->host, "example.org");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d");
  EXPECT_EQ(url->origin(), "https://example.org:8443");
  EXPECT_EQ(parse_url("http://[::1]/")->host, "::1");
  EXPECT_EQ(parse_url("http://[::1]/")->authority(), "[::1]");
  EXPECT_EQ(parse_url("http://x")->target, "/");
  EXPECT_EQ(parse_url("http://x")->port, 80);
  EXPECT_EQ(parse_url("https://x:443/")->text(), "https://x/");
}

TEST(Url, RefusesTheRest) {
  for (const char* text :
       {"", "x", "/a", "//host/", "ftp://x/", "http:///a", "http://", "http://x:99999/", "http://x:0/",
        "http://a b/", "http://x/a b", "http://x\r\n/", "http://x/\r\nHost: y", "file:///etc/passwd"}) {
    EXPECT_FALSE(parse_url(text).has_value()) << text;
  }
}

TEST(Url, ResolvesReferences) {
  const Url base = *parse_url("https://host/simple/pkg/");
  EXPECT_EQ(resolve(base, "../../files/a.whl#sha256=0")->text(), "https://host/files/a.whl");
  EXPECT_EQ(resolve(base, "/x?y")->text(), "https://host/x?y");
  EXPECT_EQ(resolve(base, "//other:8080/z")->text(), "https://other:8080/z");
  EXPECT_EQ(resolve(base, "http://plain/z")->text(), "http://plain/z");
  EXPECT_FALSE(resolve(base, "javascript:alert(1)").has_value());
}

}  // namespace
}  // namespace prims::http

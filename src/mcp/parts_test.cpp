// The small pure parts: header values, Host and Origin, progress pacing, the table of calls, sessions, event
// logs.
#include <gtest/gtest.h>

#include "mcp/event_log.h"
#include "mcp/header_value.h"
#include "mcp/in_flight.h"
#include "mcp/origin.h"
#include "mcp/progress.h"
#include "mcp/sessions.h"

namespace prims::mcp {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(HeaderValueTest, UnsafeTextTravelsAsBase64) {
  EXPECT_EQ(encode_header_value("us-west1"), "us-west1");
  EXPECT_EQ(encode_header_value(""), "");
  EXPECT_EQ(encode_header_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
  EXPECT_EQ(encode_header_value("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
  for (const std::string text :
       {"Zürich", "a\r\nb", "\t", "=?BASE64?", "x", "日本", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(decode_header_value(encode_header_value(text)), text);
  }
}

TEST(HeaderValueTest, BrokenBase64IsRefusedAndLiteralsPass) {
  EXPECT_EQ(decode_header_value("=?base64?SGVsbG8=?="), "Hello");
  EXPECT_FALSE(decode_header_value("=?base64?SGVsbG8?=").has_value());
  EXPECT_FALSE(decode_header_value("=?base64?SGVs!!!bG8=?=").has_value());
  EXPECT_FALSE(decode_header_value("=?base64?SGVsbG9=?=").has_value());
  EXPECT_FALSE(decode_header_value("=?base64?/w==?=").has_value());
  EXPECT_EQ(decode_header_value("SGVsbG8=?="), "SGVsbG8=?=");
  EXPECT_EQ(decode_header_value("=?base64?SGVsbG8="), "=?base64?SGVsbG8=");
  EXPECT_FALSE(decode_header_value("a\x01").has_value());
  EXPECT_FALSE(decode_header_value("é").has_value());
}

TEST(HeaderValueTest, ParametersAreFoundThroughPropertiesOnly) {
  const auto schema = json::parse(R"({"type":"object","properties":{
      "region":{"type":"string","x-mcp-header":"Region"},
      "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
      "either":{"anyOf":[{"type":"string","x-mcp-header":"No"}]}}})");
  const auto found = mirrored_parameters(schema->get_object());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].header, "Region");
  EXPECT_EQ(found[1].path, (std::vector<std::string>{"deep", "n"}));
  const auto arguments = json::parse(R"({"region":null,"deep":{"n":42}})");
  EXPECT_FALSE(mirrored_value(arguments->get_object(), found[0].path).has_value());
  EXPECT_EQ(mirrored_value(arguments->get_object(), found[1].path), "42");
}

TEST(OriginTest, OnlyLocalNamesAndRules) {
  const OriginRules rules{{"prims.example"}, {"https://app.example"}};
  for (const std::string_view host :
       {"localhost", "LOCALHOST:9000", "127.0.0.1:1", "[::1]", "[::1]:9000", "prims.example:80"}) {
    EXPECT_TRUE(host_allowed(host, rules)) << host;
  }
  for (const std::string_view host :
       {"", "evil.example.com", "localhost.evil.com", "localhost:x", "127.0.0.1:", "[::1", "localhost:1:2",
        "127.0.0.1@evil.com", "localhost."}) {
    EXPECT_FALSE(host_allowed(host, rules)) << host;
  }
  for (const std::string_view origin :
       {"http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "https://APP.example"}) {
    EXPECT_TRUE(origin_allowed(origin, rules)) << origin;
  }
  for (const std::string_view origin :
       {"null", "", "http://evil.example.com", "http://localhost.evil.com", "file://localhost",
        "https://app.example:444", "http://localhost/path"}) {
    EXPECT_FALSE(origin_allowed(origin, rules)) << origin;
  }
  EXPECT_TRUE(host_allowed("anything", OriginRules{{"*"}, {}}));
}

TEST(ProgressTest, FirstTextAtOnceThenAtMostFiveASecond) {
  const Clock::time_point start = Clock::now();
  ProgressMeter meter(start);
  EXPECT_FALSE(meter.take(start).has_value());
  meter.append("one\n");
  auto update = meter.take(start);
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->progress, 1);
  EXPECT_EQ(update->message, "one\n");
  meter.append("two\n");
  meter.append("three\n");
  EXPECT_FALSE(meter.take(start + Milliseconds(199)).has_value());
  EXPECT_EQ(meter.due(), start + Milliseconds(200));
  update = meter.take(start + Milliseconds(200));
  EXPECT_EQ(update->message, "two\nthree\n");
  EXPECT_EQ(update->progress, 2);
  meter.append("tail");
  update = meter.finish();
  EXPECT_EQ(update->message, "tail");
  EXPECT_EQ(update->progress, 3);
  EXPECT_FALSE(meter.finish().has_value());
}

TEST(ProgressTest, SilenceIsBrokenEveryTenSeconds) {
  const Clock::time_point start = Clock::now();
  ProgressMeter meter(start);
  EXPECT_EQ(meter.due(), start + seconds(10));
  const auto sign = meter.take(start + seconds(10));
  ASSERT_TRUE(sign.has_value());
  EXPECT_EQ(sign->message, "");
  EXPECT_EQ(meter.due(), start + seconds(20));
}

TEST(ProgressTest, MuchTextKeepsItsTailAndWholeCharacters) {
  ProgressMeter meter(Clock::now());
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "ü";
  meter.append(text + "end");
  const auto update = meter.finish();
  EXPECT_LE(update->message.size(), ProgressMeter::kMostText);
  EXPECT_TRUE(update->message.starts_with("ü"));
  EXPECT_TRUE(update->message.ends_with("end"));
}

TEST(InFlightTest, CancelFindsTheExactIdInItsScope) {
  InFlight table({});
  std::string cancelled;
  Ticket number = *table.admit("a", RequestId(1));
  Ticket text = *table.admit("a", RequestId("1"));
  Ticket other = *table.admit("b", RequestId(1));
  number.on_cancel([&] { cancelled += "number "; });
  text.on_cancel([&] { cancelled += "text "; });
  other.on_cancel([&] { cancelled += "other "; });
  table.cancel("a", RequestId(2));
  EXPECT_EQ(cancelled, "");
  table.cancel("a", RequestId(1));
  table.cancel("a", RequestId(1));
  EXPECT_EQ(cancelled, "number ");
  table.cancel_scope("a");
  EXPECT_EQ(cancelled, "number text ");
}

TEST(InFlightTest, IdsAreFreeAgainWhenTheCallHasEnded) {
  InFlight table({});
  {
    const Ticket ticket = *table.admit("a", RequestId(0));
    EXPECT_FALSE(table.admit("a", RequestId(0)).has_value());
    EXPECT_TRUE(table.busy("a"));
  }
  EXPECT_FALSE(table.busy("a"));
  EXPECT_TRUE(table.admit("a", RequestId(0)).has_value());
}

TEST(InFlightTest, IsBounded) {
  InFlight table({3, 2});
  const auto first = table.admit("a", RequestId(1));
  const auto second = table.admit("a", RequestId("x"));
  EXPECT_EQ(table.admit("a", RequestId(3)).error().status, 503U);
  const auto third = table.admit_unnamed();
  EXPECT_TRUE(third.has_value());
  EXPECT_EQ(table.admit("b", RequestId(1)).error().status, 503U);
}

TEST(InFlightTest, ATicketMayOutliveTheTable) {
  auto table = std::make_unique<InFlight>(InFlight::Limits{});
  Ticket ticket = *table->admit("a", RequestId(1));
  table.reset();
}

TEST(InFlightTest, ACallThatEndsWhileItIsCancelledIsFine) {
  InFlight table({});
  auto ticket = std::make_unique<Ticket>(*table.admit("a", RequestId(1)));
  ticket->on_cancel([&] { ticket.reset(); });
  table.cancel_all();
  EXPECT_EQ(table.size(), 0U);
}

TEST(SessionsTest, IdleOnesEndBusyOnesStay) {
  std::string busy;
  std::vector<std::string> ended;
  Sessions sessions({8, hours(1)}, [&](const std::string& id) { return id == busy; });
  sessions.on_end([&](const std::string& id) { ended.push_back(id); });
  const Clock::time_point now = Clock::now();
  const Principal me;
  const std::string idle = sessions.open("2025-11-25", "c", me, now)->id;
  busy = sessions.open("2025-11-25", "c", me, now)->id;
  EXPECT_EQ(sessions.use(idle, me, now + hours(2)), nullptr);
  EXPECT_EQ(ended, std::vector{idle});
  EXPECT_NE(sessions.use(busy, me, now + hours(2)), nullptr);
}

TEST(SessionsTest, FullTablesMakeRoomForTheNew) {
  Sessions sessions({2, hours(1)}, [](const std::string&) { return false; });
  const Clock::time_point now = Clock::now();
  const Principal me;
  const std::string oldest = sessions.open("2025-11-25", "c", me, now)->id;
  const std::string newer = sessions.open("2025-11-25", "c", me, now + seconds(1))->id;
  ASSERT_NE(sessions.open("2025-11-25", "c", me, now + seconds(2)), nullptr);
  EXPECT_EQ(sessions.use(oldest, me, now + seconds(3)), nullptr);
  EXPECT_NE(sessions.use(newer, me, now + seconds(3)), nullptr);
  Sessions all_busy({1, hours(1)}, [](const std::string&) { return true; });
  ASSERT_NE(all_busy.open("2025-11-25", "c", me, now), nullptr);
  EXPECT_EQ(all_busy.open("2025-11-25", "c", me, now), nullptr);
}

TEST(SessionsTest, ASessionBelongsToItsPrincipalAndGarbageIsNoId) {
  Sessions sessions({8, hours(1)}, [](const std::string&) { return false; });
  const Clock::time_point now = Clock::now();
  const std::string id = sessions.open("2025-11-25", "c", Principal{"alice"}, now)->id;
  EXPECT_GE(id.size(), 22U);
  EXPECT_EQ(sessions.use(id, Principal{"bob"}, now), nullptr);
  EXPECT_NE(sessions.use(id, Principal{"alice"}, now), nullptr);
  for (const std::string bad : {"", ".", "../../../../etc/passwd", "$(id)", "*"}) {
    EXPECT_EQ(sessions.use(bad, Principal{"alice"}, now), nullptr);
  }
  EXPECT_EQ(sessions.use(std::string(100'000, 'a'), Principal{"alice"}, now), nullptr);
}

TEST(EventLogTest, KeepsResponsesAndDropsOldProgress) {
  EventLog log(Bytes{10});
  EXPECT_EQ(log.append("progress", EventLog::Keep::while_room), 1U);
  EXPECT_EQ(log.append("the response", EventLog::Keep::always), 2U);
  ASSERT_EQ(log.events().size(), 1U);
  EXPECT_EQ(log.events().front().number, 2U);
  EXPECT_EQ(log.last(), 2U);
}

TEST(EventLogTest, EventIdsAreReadStrictly) {
  EXPECT_EQ(EventId::parse("7-3")->stream, 7U);
  EXPECT_EQ((EventId{7, 3}.text()), "7-3");
  for (const std::string_view bad : {"", "7", "7-", "-3", "7-3 ", "a-b", "7--3", "99999999999999999999-1"}) {
    EXPECT_FALSE(EventId::parse(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace prims::mcp

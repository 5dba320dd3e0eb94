#include "python/protocol.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace prims::python {
namespace {

Message sample() {
  Message message{FrameType::result, 7, {}, std::string("raw\0bytes", 9)};
  message.fields["value"] = json::Object{{"text", "42"}, {"type", "int"}};
  return message;
}

TEST(MessageReader, ReadsBackWhatWasEncoded) {
  const std::string wire = encode(sample()) + encode(sample());
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, wire.size()}) {
    MessageReader reader;
    int found = 0;
    for (std::size_t i = 0; i < wire.size(); i += step) {
      reader.feed(std::string_view(wire).substr(i, step));
      auto message = reader.next();
      for (; message && *message; message = reader.next()) {
        ++found;
        EXPECT_EQ((**message).type, FrameType::result);
        EXPECT_EQ((**message).id, 7U);
        EXPECT_EQ((**message).bytes, sample().bytes);
        EXPECT_EQ((**message).fields, sample().fields);
      }
      ASSERT_TRUE(message);
    }
    EXPECT_EQ(found, 2);
  }
}

TEST(MessageReader, CarriesTheCodeUnchanged) {
  const std::string code("\xef\xbb\xbfx = '\xff'\r\n\0\n", 15);
  const Message message = run_message(3, {code, "/run/main.py", "/sandbox/data", {"a", "b c"}});
  MessageReader reader;
  reader.feed(encode(message));
  const auto read = reader.next();
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((**read).bytes, code);
  EXPECT_EQ(json::write((**read).fields),
            R"({"file":"/run/main.py","workspace":"/sandbox/data","arguments":["a","b c"]})");
}

std::string header(std::uint32_t size, char version, char type, char flags = 0) {
  std::string out;
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>((size >> (8 * i)) & 0xff));
  out += {version, type, flags, 0};
  return out + std::string(8, '\0');
}

TEST(MessageReader, RefusesWhatIsMalformed) {
  const std::string empty_object("\2\0\0\0{}", 6);
  for (const std::string& wire : {
           header(6, 2, 1) + empty_object,                                   // another version
           header(6, 1, 1, 1) + empty_object,                                // unknown flags
           header(3, 1, 1) + "abc",                                          // no room for a length
           header(0xffffffff, 1, 1),                                         // absurdly long
           header(kMaxGuestPayload + 1, 1, 1),                               // too long
           header(6, 1, 1) + std::string("\3\0\0\0{}", 6),                   // text longer than the frame
           header(6, 1, 1) + std::string("\2\0\0\0[]", 6),                   // no object
           header(6, 1, 1) + std::string("\2\0\0\0{x", 6),                   // no JSON
           header(4, 1, 1) + std::string(4, '\0'),                           // no text at all
           header(13, 1, 1) + std::string("\x9\0\0\0{\"a\":\"\xff\"}", 13),  // no UTF-8
       }) {
    MessageReader reader;
    reader.feed(wire);
    EXPECT_FALSE(reader.next()) << testing::PrintToString(wire);
    reader.feed(encode(sample()));
    EXPECT_FALSE(reader.next()) << "a reader that failed stays failed";
  }
}

TEST(MessageReader, SaysWhichVersionCame) {
  MessageReader reader;
  reader.feed(header(6, 2, 1) + std::string("\2\0\0\0{}", 6));
  const auto read = reader.next();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the guest speaks protocol 2, this program 1");
}

TEST(MessageReader, SurvivesRandomBytes) {
  std::mt19937 random(4711);
  const std::string good = encode(sample());
  for (int round = 0; round < 20'000; ++round) {
    std::string wire = good + good;
    for (std::uint32_t i = random() % 6; i > 0; --i)
      wire[random() % wire.size()] = static_cast<char>(random());
    wire.resize(random() % (wire.size() + 1));
    MessageReader reader;
    reader.feed(wire);
    auto message = reader.next();
    for (int count = 0; message && *message; message = reader.next()) {
      ASSERT_LE(++count, 2);
      [[maybe_unused]] const GuestResult result = read_result((**message).fields);
    }
  }
}

json::Object object(std::string_view text) {
  return json::parse(text)->as_object();
}

TEST(ReadResult, TakesErrorsAndValues) {
  const GuestResult result = read_result(object(
      R"({"value":{"text":"2","type":"int"},"error":{"type":"KeyError","message":"'x'","line":3,"traceback":"T",)"
      R"("frames":[{"line":1,"name":"<module>","file":"main.py"},{"line":3,"name":"f","file":"main.py"}]}})"));
  ASSERT_TRUE(result.value && result.error);
  EXPECT_EQ(result.value->text, "2");
  EXPECT_EQ(result.error->type, "KeyError");
  EXPECT_EQ(result.error->line, 3);
  ASSERT_EQ(result.error->frames.size(), 2U);
  EXPECT_EQ(result.error->frames[1].name, "f");
  EXPECT_EQ(result.error->traceback, "T");
}

TEST(ReadResult, TakesAnythingForAbsent) {
  for (const std::string_view text :
       {"{}", R"({"value":5,"error":[]})", R"({"value":{"text":5},"error":{"line":-1,"frames":{}}})",
        R"({"error":{"line":99999999999,"frames":[1,null,{"line":"x"}],"type":{},"message":null}})"}) {
    const GuestResult result = read_result(object(text));
    if (result.error) EXPECT_EQ(result.error->line, std::nullopt);
    if (result.value) EXPECT_EQ(result.value->text, "");
  }
}

TEST(ReadResult, BoundsTheFrames) {
  json::Array frames;
  for (int i = 0; i < 10'000; ++i) frames.push_back(json::Object{{"line", i}});
  const GuestResult result = read_result(json::Object{{"error", json::Object{{"frames", frames}}}});
  EXPECT_LE(result.error->frames.size(), 100U);
}

}  // namespace
}  // namespace prims::python

#include "mcp/message.h"

#include <gtest/gtest.h>

#include "mcp/protocol.h"

namespace prims::mcp {
namespace {

struct Bad {
  std::string_view text;
  RpcCode code;
  std::string_view id;  ///< that the error carries; empty: none
};

TEST(MessageTest, BadMessagesHaveExactCodesAndNeverAMadeUpId) {
  const Bad table[] = {
      {"[]", RpcCode::invalid_request, ""},
      {"7", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"2.0","id":true,"method":"ping"})", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"})", RpcCode::invalid_request, ""},
      {R"({"jsonrpc":"1.0","id":"a","method":"ping"})", RpcCode::invalid_request, "\"a\""},
      {R"({"id":0,"method":"ping"})", RpcCode::invalid_request, "0"},
      {R"({"jsonrpc":"2.0","id":1,"method":5})", RpcCode::invalid_request, "1"},
      {R"({"jsonrpc":"2.0","id":-1})", RpcCode::invalid_request, "-1"},
      {R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})", RpcCode::invalid_request, "1"},
      {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", RpcCode::invalid_params, "1"},
  };
  for (const Bad& bad : table) {
    const auto message = read_message(*read_json(bad.text));
    ASSERT_FALSE(message.has_value()) << bad.text;
    EXPECT_EQ(message.error().error.code, bad.code) << bad.text;
    EXPECT_EQ(message.error().id ? message.error().id->text() : "", bad.id) << bad.text;
  }
}

TEST(MessageTest, WhatIsNotStrictJsonIsAParseError) {
  for (const std::string_view text :
       {"", "{", "nope", R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})", R"({"id":NaN})",
        R"({"id":"\ud800"})", "{\"id\":\"\xff\"}", R"({"id":1} {"id":2})"}) {
    const auto value = read_json(text);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_EQ(value.error().code, RpcCode::parse_error) << text;
  }
  EXPECT_FALSE(read_json(std::string(200'000, '[')).has_value());
}

TEST(MessageTest, KindsAreTold) {
  const auto kind = [](std::string_view text) { return read_message(*read_json(text))->kind; };
  EXPECT_EQ(kind(R"({"jsonrpc":"2.0","id":0,"method":"ping"})"), Message::Kind::request);
  EXPECT_EQ(kind(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), Message::Kind::notification);
  EXPECT_EQ(kind(R"({"jsonrpc":"2.0","id":"x","result":{}})"), Message::Kind::response);
  EXPECT_EQ(kind(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}})"),
            Message::Kind::response);
}

TEST(MessageTest, IdsDifferByType) {
  EXPECT_NE(RequestId(1), RequestId("1"));
  EXPECT_EQ(RequestId(0), *RequestId::from(json::Value(0)));
  EXPECT_EQ(RequestId("0").text(), "\"0\"");
  EXPECT_EQ(RequestId(-5).text(), "-5");
  EXPECT_FALSE(RequestId::from(json::Value(std::string(5000, 'x'))).has_value());
}

TEST(ProtocolTest, TheBodyDecidesTheEra) {
  const auto era = [](std::string_view text, std::optional<std::string_view> header) {
    return era_of(*read_message(*read_json(text)), header);
  };
  constexpr std::string_view kClaim =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}})";
  constexpr std::string_view kInitialize = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})";
  constexpr std::string_view kList = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";
  EXPECT_EQ(era(kClaim, std::nullopt), Era::modern);
  EXPECT_EQ(era(kInitialize, kModernVersion), Era::legacy);
  EXPECT_EQ(era(kList, kModernVersion), Era::modern);
  EXPECT_EQ(era(kList, std::nullopt), Era::legacy);
  EXPECT_EQ(era(kList, "2025-06-18"), Era::legacy);
}

TEST(ProtocolTest, InitializeNegotiatesDownToWhatWeSpeak) {
  for (const std::string_view version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    EXPECT_EQ(negotiate_legacy(version), version);
  }
  EXPECT_EQ(negotiate_legacy("2026-07-28"), "2025-11-25");
  EXPECT_EQ(negotiate_legacy("2023-01-01"), "2025-11-25");
}

}  // namespace
}  // namespace prims::mcp

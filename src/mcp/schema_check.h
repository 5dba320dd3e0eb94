// For tests: every message is held against the official JSON schema of its version, where
// PRIMS_MCP_SCHEMA_DIR names a directory with <version>.schema.json files. Without it nothing is checked, and
// conforming tests say so by passing.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "json/schema.h"

namespace prims::mcp::testing {

inline const json::Schema* schema_of(const std::string& version) {
  static std::map<std::string, std::unique_ptr<json::Schema>> loaded;
  const char* directory = std::getenv("PRIMS_MCP_SCHEMA_DIR");
  if (directory == nullptr) return nullptr;
  auto& schema = loaded[version];
  if (!schema) {
    const std::string path = std::string(directory) + "/" + version + ".schema.json";
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    auto value = json::parse(text, 256);
    EXPECT_TRUE(value.has_value()) << path;
    schema = std::make_unique<json::Schema>(value ? *std::move(value) : json::Value());
  }
  return schema.get();
}

inline std::string result_definition(std::string_view method) {
  if (method == "initialize") return "InitializeResult";
  if (method == "server/discover") return "DiscoverResult";
  if (method == "tools/list") return "ListToolsResult";
  if (method == "tools/call") return "CallToolResult";
  return "EmptyResult";
}

inline std::string first_defined(const json::Schema& schema, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (schema.defines(name)) return std::string(name);
  }
  return "none";
}

/// `message` came from a server in answer to `method` (or is a notification).
inline void expect_valid(const std::string& version, std::string_view method, std::string_view message) {
  const auto value = json::parse(message);
  ASSERT_TRUE(value.has_value() && value->is_object()) << message;
  const json::Schema* schema = schema_of(version);
  if (schema == nullptr) return;
  const json::Object& object = value->get_object();
  const auto expect_fits = [&](const json::Value& part, const std::string& name) {
    const auto fault = schema->fault(part, name);
    EXPECT_FALSE(fault.has_value()) << version << " " << name << *fault << "\n" << message;
  };
  if (object.contains("method")) {
    expect_fits(*value, "ProgressNotification");
  } else if (object.contains("error")) {
    // Old schemas demand an id even where the request had none that could be read.
    const std::string name = first_defined(*schema, {"JSONRPCErrorResponse", "JSONRPCError"});
    if (object.contains("id") || name == "JSONRPCErrorResponse") expect_fits(*value, name);
  } else {
    expect_fits(*value, first_defined(*schema, {"JSONRPCResultResponse", "JSONRPCResponse"}));
    const json::Value* result = json::find(object, "result");
    if (result != nullptr) expect_fits(*result, result_definition(method));
  }
}

/// `message` came from a client.
inline void expect_valid_request(const std::string& version, std::string_view message) {
  const auto value = json::parse(message);
  ASSERT_TRUE(value.has_value() && value->is_object()) << message;
  const json::Schema* schema = schema_of(version);
  if (schema == nullptr) return;
  static const std::map<std::string, std::string, std::less<>> kDefinitions = {
      {"initialize", "InitializeRequest"},
      {"notifications/initialized", "InitializedNotification"},
      {"server/discover", "DiscoverRequest"},
      {"ping", "PingRequest"},
      {"tools/list", "ListToolsRequest"},
      {"tools/call", "CallToolRequest"},
      {"notifications/cancelled", "CancelledNotification"}};
  const auto method = json::string_field(value->get_object(), "method").value_or("");
  const auto found = kDefinitions.find(method);
  const std::string name = found == kDefinitions.end() ? "JSONRPCMessage" : found->second;
  const auto fault = schema->fault(*value, name);
  EXPECT_FALSE(fault.has_value()) << version << " " << name << *fault << "\n" << message;
}

}  // namespace prims::mcp::testing

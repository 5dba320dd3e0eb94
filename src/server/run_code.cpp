#include "server/run_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/version.h"
#include "server/arguments.h"
#include "server/result.h"

namespace prims::server {
namespace {

std::string seconds(Milliseconds span) {
  return fmt::format("{:g}", std::chrono::duration<double>(span).count());
}

std::string installed(const Settings& settings) {
  if (settings.base_packages.empty()) return "The standard library is installed";
  return fmt::format("The standard library, {} are installed", fmt::join(settings.base_packages, ", "));
}

std::string description(const Settings& settings) {
  return fmt::format(
      "Runs a Python program in a fresh, isolated sandbox (real CPython, no network) and returns what it "
      "printed, the value of its "
      "last expression, its error if any, and the files it made.\n"
      "- Each call is a complete script of its own: nothing of an earlier call is left.\n"
      "- {}. Name anything else in requirements, never pip inside the code.\n"
      "- Print what you want to see, or end with an expression. Top-level await works.\n"
      "- The working directory is writable; files below output/ are reported as artifacts.\n"
      "- Limits: {} s wall clock (timeout changes it), {} of memory, {} processes, {} characters of code. A "
      "limit that ends the "
      "program is named in status and evidence; partial output is always returned.",
      installed(settings), seconds(settings.timeout), to_string(settings.memory), settings.processes,
      settings.code_length);
}

json::Object input_schema(const Settings& settings) {
  json::Object code{{"type", "string"},
                    {"description", "the Python program, exactly as it should be compiled"}};
  json::Object requirements{{"type", "array"},
                            {"items", json::Object{{"type", "string"}}},
                            {"description",
                             "packages from the package index as PEP 508 requirements, for example "
                             "[\"scikit-learn\", \"polars>=1\"]; "
                             "installed once, then cached"}};
  json::Object timeout{
      {"type", "number"},
      {"description",
       fmt::format("wall-clock limit in seconds, default {}, at most {}; installing packages does "
                   "not count",
                   seconds(settings.timeout), seconds(settings.max_timeout))}};
  json::Object input{{"type", "string"},
                     {"description", "text for standard input; without it input() sees the end of file"}};
  json::Object properties;
  properties["code"] = std::move(code);
  properties["requirements"] = std::move(requirements);
  properties["timeout"] = std::move(timeout);
  properties["stdin"] = std::move(input);
  json::Object schema{{"type", "object"}};
  schema["properties"] = std::move(properties);
  schema["required"] = json::Array{"code"};
  schema["additionalProperties"] = false;
  return schema;
}

mcp::ToolDefinition definition(const Settings& settings) {
  mcp::ToolDefinition tool;
  tool.name = "run_code";
  tool.title = "Run Python code";
  tool.description = description(settings);
  tool.input_schema = input_schema(settings);
  tool.output_schema = result_schema();
  tool.annotations = json::Object{{"readOnlyHint", false},
                                  {"destructiveHint", false},
                                  {"idempotentHint", false},
                                  {"openWorldHint", false}};
  // Claude Code (2026-11) defers tools unless told otherwise, and cuts a result at 25,000 tokens unless the
  // tool asks for more characters: both streams at their default of 64 KiB, twice (structured and as text),
  // stay whole.
  tool.meta = json::Object{{"anthropic/maxResultSizeChars", 200'000}, {"anthropic/alwaysLoad", true}};
  return tool;
}

// Turns raw output into valid text for progress, each stream decoded on its own.
class ProgressText {
 public:
  explicit ProgressText(std::shared_ptr<transport::ProgressSink> sink) : sink_(std::move(sink)) {}

  void output(python::Stream stream, std::string_view raw) {
    std::string text = decoders_[stream == python::Stream::out ? 0 : 1].feed(raw);
    if (!text.empty()) sink_->report(std::move(text));
  }
  void sentence(const std::string& text) { sink_->report(text + "\n"); }

 private:
  std::shared_ptr<transport::ProgressSink> sink_;  // shared with the transport
  std::array<Utf8Decoder, 2> decoders_;
};

mcp::ToolResult to_tool_result(const Report& report) {
  mcp::ToolResult result;
  result.structured = to_json(report);
  result.is_error = !ran_to_its_end(status_of(report));
  return result;
}

/// Whose turn it is when calls wait: one session of one principal.
std::string caller_of(const mcp::CallContext& context) {
  return fmt::format("{}/{}", context.principal.name, context.legacy_session.value_or(""));
}

}  // namespace

Tools::Tools(const Settings& settings, Engine& engine) : settings_(settings), engine_(engine) {
  definitions_.push_back(definition(settings));
}

io::Task<mcp::ToolResult> Tools::call(mcp::ToolCall call, std::shared_ptr<transport::ProgressSink> progress,
                                      std::shared_ptr<io::Cancellation> cancellation) {
  return run_code(std::move(call.arguments), caller_of(call.context), std::move(progress),
                  std::move(cancellation));
}

io::Task<mcp::ToolResult> Tools::run_code(json::Object arguments, std::string caller,
                                          std::shared_ptr<transport::ProgressSink> progress,
                                          std::shared_ptr<io::Cancellation> cancellation) {
  ArgumentLimits limits;
  limits.code_length = settings_.code_length;
  limits.max_timeout = settings_.max_timeout;
  limits.input_size = settings_.input_size;
  auto read = read_run_arguments(arguments, limits);
  if (!read) {
    Report refused;
    refused.run_id = random_token();
    refused.status = Status::invalid_argument;
    refused.message = read.error().message;
    co_return to_tool_result(refused);
  }
  Call call;
  call.caller = std::move(caller);
  call.code = std::move(read->code);
  call.input = std::move(read->input);
  call.requirements = std::move(read->requirements);
  call.timeout = read->timeout;
  if (progress) {
    auto text = std::make_shared<ProgressText>(std::move(progress));  // shared by the two sinks
    call.on_output = [text](python::Stream stream, std::string_view raw) { text->output(stream, raw); };
    call.on_progress = [text](const std::string& sentence) { text->sentence(sentence); };
  }
  const Report report = co_await engine_.execute(std::move(call), std::move(cancellation));
  co_return to_tool_result(report);
}

mcp::ServerInfo server_info(const Settings& settings) {
  mcp::ServerInfo info;
  info.version = kVersion;
  info.instructions = fmt::format(
      "PRIMS runs Python for you: run_code executes a complete script in a throw-away sandbox and returns "
      "stdout, stderr, the value "
      "of the last expression, errors with line numbers, and the files written below output/. Nothing "
      "survives a call, so send "
      "whole programs. There is no network in the sandbox. {}; list other packages in "
      "requirements. Default time "
      "limit {} s, memory {}.",
      installed(settings), seconds(settings.timeout), to_string(settings.memory));
  return info;
}

}  // namespace prims::server

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/read_file.h"
#include "cli/terminal.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "server/app.h"
#include "upstream/client.h"

namespace prims::cli {
namespace {

constexpr Bytes kMaxArguments = mib(64);
constexpr std::chrono::seconds kListTime{60};

/// What the command needs on the loop.
struct Work {
  const CallCommand& command;
  json::Object arguments;
  std::shared_ptr<io::Cancellation> cancellation =
      std::make_shared<io::Cancellation>();  // shared with the call
  int signal = 0;
};

Result<json::Object> read_arguments(const CallCommand& command) {
  std::string text = command.arguments;
  if (text == "-") {
    PRIMS_ASSIGN_OR_RETURN(text, read_file("-", kMaxArguments));
  }
  auto value = json::parse(text);
  if (!value) return fail(Kind::invalid_input, "the arguments are not JSON: " + value.error().message);
  if (!value->is_object())
    return fail(Kind::invalid_input, R"(the arguments must be a JSON object, such as {"code": "1 + 1"})");
  return std::move(value->as_object());
}

/// Prints progress as it comes: pieces of output or sentences, whichever the server sends.
class ProgressPrinter {
 public:
  void operator()(const mcp::ReceivedProgress& progress) {
    if (progress.message.empty()) return;
    at_line_start_ = progress.message.ends_with('\n');
    static_cast<void>(write_all(STDERR_FILENO, tame(STDERR_FILENO, progress.message)));
  }
  ~ProgressPrinter() {
    if (!at_line_start_) static_cast<void>(write_all(STDERR_FILENO, "\n"));
  }

 private:
  bool at_line_start_ = true;
};

std::string as_text(const json::Value& block) {
  const json::Object* object = block.if_object();
  if (object == nullptr) return json::write(block);
  const std::string type = json::string_field(*object, "type").value_or("");
  if (type == "text") return json::string_field(*object, "text").value_or("");
  if (const auto uri = json::string_field(*object, "uri")) return fmt::format("[{} {}]", type, *uri);
  if (const auto mime = json::string_field(*object, "mimeType")) return fmt::format("[{} {}]", type, *mime);
  return json::write(block);
}

void print_outcome(const mcp::CallOutcome& outcome, Form form) {
  if (form == Form::json) {
    json::Object page{{"content", outcome.content}};
    if (outcome.structured) page["structuredContent"] = *outcome.structured;
    page["isError"] = outcome.is_error;
    return print(json::write(page) + "\n");
  }
  for (const json::Value& block : outcome.content) {
    std::string text = as_text(block);
    if (!text.ends_with('\n')) text += '\n';
    print(tame(STDOUT_FILENO, std::move(text)));
  }
  if (outcome.content.empty() && outcome.structured) print(json::write(*outcome.structured) + "\n");
}

void print_tools(const mcp::ServerDescription& server, const std::vector<mcp::ListedTool>& tools, Form form) {
  if (form == Form::json) {
    json::Array definitions;
    for (const mcp::ListedTool& tool : tools) definitions.push_back(tool.definition);
    json::Object about{
        {"name", server.name}, {"version", server.version}, {"protocolVersion", server.dialect.version}};
    return print(json::write(json::Object{{"server", about}, {"tools", definitions}}) + "\n");
  }
  complain(tame(STDERR_FILENO,
                fmt::format("{} {} speaks MCP {}", server.name, server.version, server.dialect.version)));
  for (const mcp::ListedTool& tool : tools) {
    const std::string summary = tool.description.substr(0, tool.description.find('\n'));
    print(tame(STDOUT_FILENO, fmt::format("{}  {}\n", tool.name, summary)));
  }
}

int failed(const Error& error) {
  complain(tame(STDERR_FILENO, error.message));
  return server::exit_status::kError;
}

io::Task<Result<std::unique_ptr<upstream::Client>>> connect(const CallCommand* command) {
  upstream::ClientOptions options;
  if (command->url) {
    upstream::HttpTarget target;
    target.url = *command->url;
    co_return co_await upstream::Client::connect(std::move(target), std::move(options));
  }
  upstream::Command server;
  server.argv = command->command;
  // The server is the user's own choice, as in a shell.
  const std::map<std::string, std::string> variables = environment();
  server.environment.assign(variables.begin(), variables.end());
  co_return co_await upstream::Client::connect(std::move(server), std::move(options));
}

io::Task<int> list(upstream::Client* client, Form form) {
  const Deadline deadline = Deadline::after(kListTime);
  auto tools = co_await client->list_tools(deadline);
  if (!tools) co_return failed(tools.error());
  print_tools(client->server(), *tools, form);
  co_return server::exit_status::kOk;
}

io::Task<int> call_tool(upstream::Client* client, Work* work) {
  upstream::ToolCallRequest request;
  request.tool = *work->command.tool;
  request.arguments = std::move(work->arguments);
  auto printer = std::make_shared<ProgressPrinter>();  // shared with the request, which may outlive this Task
  request.on_progress = [printer](const mcp::ReceivedProgress& progress) { (*printer)(progress); };
  request.cancellation = work->cancellation;
  auto outcome = co_await client->call_tool(std::move(request));
  printer.reset();
  if (!outcome) co_return failed(outcome.error());
  print_outcome(*outcome, work->command.form);
  co_return outcome->is_error ? server::exit_status::kError : server::exit_status::kOk;
}

io::Task<> cancel_on_signal(io::Signals* signals, Work* work) {
  auto number = co_await signals->next();
  if (!number) co_return;
  work->signal = *number;
  work->cancellation->request();
  // The server has been told; somebody who asks again does not want to wait for its answer.
  auto second = co_await signals->next();
  if (second) ::_exit(server::exit_status::kSignalBase + *second);
}

io::Task<int> use(Work* work) {
  auto connected = co_await connect(&work->command);
  if (!connected) co_return failed(connected.error());
  const std::unique_ptr<upstream::Client> client = std::move(*connected);
  const io::Executor executor = co_await io::this_executor;
  io::Signals signals(executor, {SIGINT, SIGTERM});
  io::TaskScope scope(executor);
  scope.spawn(cancel_on_signal(&signals, work), "wait for a signal");
  int status = 0;
  if (work->command.tool) {
    status = co_await call_tool(client.get(), work);
  } else {
    status = co_await list(client.get(), work->command.form);
  }
  co_await client->close();
  scope.cancel();
  auto joined = co_await scope.join();
  co_return work->signal == 0 ? status : server::exit_status::kSignalBase + work->signal;
}

}  // namespace

int call(const CallCommand& command) {
  auto arguments = read_arguments(command);
  if (!arguments) {
    complain(arguments.error().message);
    return server::exit_status::kUsage;
  }
  Work work{.command = command, .arguments = std::move(*arguments)};
  io::Loop loop;
  return loop.run_until_done(use(&work));
}

}  // namespace prims::cli

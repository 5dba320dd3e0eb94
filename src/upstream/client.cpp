#include "upstream/client.h"

#include <fmt/format.h>

#include <set>

#include "base/log.h"
#include "mcp/header_value.h"
#include "upstream/stdio_channel.h"

namespace prims::upstream {

Client::Client(Transport transport, Connector connector, ClientOptions options)
    : transport_(transport),
      connector_(std::move(connector)),
      options_(std::move(options)),
      core_(options_.program_version) {}

Client::~Client() {
  if (channel_) channel_->abandon();
}

io::Task<Result<std::unique_ptr<Client>>> Client::connect(Command command, ClientOptions options) {
  const io::Executor executor = co_await io::this_executor;
  Connector connector = [executor, command = std::move(command)]() -> Result<std::shared_ptr<Channel>> {
    return StdioChannel::open(executor, command);
  };
  std::unique_ptr<Client> client(new Client(Transport::stdio, std::move(connector), std::move(options)));
  co_return co_await connected(std::move(client));
}

io::Task<Result<std::unique_ptr<Client>>> Client::connect(HttpTarget target, ClientOptions options) {
  Connector connector = [target = std::move(target)]() -> Result<std::shared_ptr<Channel>> {
    return HttpChannel::open(target);
  };
  std::unique_ptr<Client> client(new Client(Transport::http, std::move(connector), std::move(options)));
  co_return co_await connected(std::move(client));
}

io::Task<Result<std::unique_ptr<Client>>> Client::connected(std::unique_ptr<Client> client) {
  auto opened = co_await client->open();
  if (!opened) {
    // A server that was started is stopped in order, so that it can say its last words.
    co_await client->close();
    co_return std::unexpected(opened.error());
  }
  co_return client;
}

io::Task<Result<>> Client::open() {
  const Deadline deadline = Deadline::after(options_.connect_time);
  PRIMS_CO_ASSIGN_OR_RETURN(channel_, connector_());
  if (options_.era != EraChoice::legacy) {
    auto verdict = co_await probe(deadline);
    if (!verdict) co_return std::unexpected(verdict.error());
    if (*verdict == mcp::ProbeVerdict::modern) co_return Result<>();
    if (*verdict == mcp::ProbeVerdict::incompatible || options_.era == EraChoice::modern) {
      co_return fail(Kind::unavailable, "the server speaks no protocol version that is spoken here");
    }
  }
  // Some old servers exit when anything comes before initialize.
  if (channel_->broken()) {
    PRIMS_CO_ASSIGN_OR_RETURN(channel_, connector_());
  }
  auto initialized = co_await initialize(deadline);
  if (initialized || !channel_->broken() || options_.era == EraChoice::legacy) co_return initialized;
  PRIMS_CO_ASSIGN_OR_RETURN(channel_, connector_());
  auto again = co_await initialize(deadline);
  co_return again;
}

io::Task<Result<mcp::ProbeVerdict>> Client::probe(Deadline deadline) {
  mcp::Outgoing discover = core_.discover();
  const bool may_be_silent = transport_ == Transport::stdio;
  const Deadline patience = may_be_silent ? Deadline::after(options_.probe_time) : deadline;
  auto answer = co_await send(std::move(discover), patience, Request::GiveUp::silently);
  if (!answer) {
    // Over stdio silence and an exit are how some old servers take the probe; over HTTP they are failures.
    const Kind kind = answer.error().kind;
    if (may_be_silent && (kind == Kind::timed_out || kind == Kind::unavailable))
      co_return mcp::ProbeVerdict::legacy;
    co_return std::unexpected(answer.error());
  }
  if (!answer->response) co_return mcp::ProbeVerdict::legacy;
  const mcp::ProbeVerdict verdict = mcp::judge_probe(*answer->response);
  if (verdict != mcp::ProbeVerdict::modern) co_return verdict;
  if (const json::Object* result = json::object_field(answer->response->body, "result")) {
    server_ = mcp::read_discover(*result);
  }
  server_.dialect = core_.dialect();
  ++handshakes_;
  co_return verdict;
}

io::Task<Result<>> Client::initialize(Deadline deadline) {
  mcp::Outgoing message = core_.initialize();
  auto answer = co_await send(std::move(message), deadline, Request::GiveUp::silently);
  if (!answer) co_return std::unexpected(answer.error());
  PRIMS_CO_ASSIGN_OR_RETURN(const json::Object result, result_in(*answer));
  PRIMS_CO_ASSIGN_OR_RETURN(server_, mcp::read_initialized(result));
  core_.speak(server_.dialect);
  ++handshakes_;
  const auto channel = channel_;
  auto notified = co_await channel->notify(core_.initialized(), core_.dialect());
  co_return notified;
}

io::Task<Result<Answer>> Client::send(mcp::Outgoing message, Deadline deadline, Request::GiveUp give_up) {
  const auto channel = channel_;
  Request request;
  request.message = std::move(message);
  request.dialect = core_.dialect();
  request.deadline = deadline;
  request.give_up = give_up;
  auto answer = co_await channel->request(std::move(request));
  co_return answer;
}

Result<json::Object> Client::result_in(const Answer& answer) const {
  if (answer.response) return mcp::result_of(*answer.response);
  return fail(Kind::unavailable,
              fmt::format("the server answered with HTTP {} and no message", answer.status));
}

io::Task<Result<std::vector<mcp::ListedTool>>> Client::list_tools(Deadline deadline) {
  std::vector<mcp::ListedTool> tools;
  std::set<std::string> seen;
  std::optional<std::string> cursor;
  do {
    mcp::Outgoing message = core_.list_tools(cursor);
    auto answer = co_await send(std::move(message), deadline, Request::GiveUp::tell_server);
    if (!answer) co_return std::unexpected(answer.error());
    PRIMS_CO_ASSIGN_OR_RETURN(const json::Object result, result_in(*answer));
    PRIMS_CO_ASSIGN_OR_RETURN(mcp::ToolPage page, mcp::read_tool_page(result));
    for (mcp::ListedTool& tool : page.tools) tools.push_back(std::move(tool));
    cursor = std::move(page.next_cursor);
    if (cursor && !seen.insert(*cursor).second)
      co_return fail(Kind::unavailable, "the server's tool list goes in circles");
    if (tools.size() > options_.most_tools || seen.size() > options_.most_tools) {
      co_return fail(Kind::exhausted,
                     fmt::format("the server lists more than {} tools", options_.most_tools));
    }
  } while (cursor);
  if (!mirrors()) co_return tools;
  std::erase_if(tools, [](const mcp::ListedTool& tool) {
    const auto fault = mcp::mirror_fault(tool.input_schema);
    if (fault) log::warning("the upstream tool {} is left out: {}", tool.name, *fault);
    return fault.has_value();
  });
  schemas_.clear();
  for (const mcp::ListedTool& tool : tools) schemas_[tool.name] = tool.input_schema;
  co_return tools;
}

io::Task<Result<Answer>> Client::attempt(ToolCallRequest call) {
  const auto channel = channel_;
  Request request;
  request.dialect = core_.dialect();
  request.on_progress = std::move(call.on_progress);
  request.cancellation = std::move(call.cancellation);
  request.deadline = call.deadline;
  if (const auto schema = schemas_.find(call.tool); mirrors() && schema != schemas_.end()) {
    for (const mcp::MirroredParameter& parameter : mcp::mirrored_parameters(schema->second)) {
      const auto value = mcp::mirrored_value(call.arguments, parameter.path);
      if (value) request.parameters.emplace_back(parameter.header, mcp::encode_header_value(*value));
    }
  }
  request.message = core_.call_tool(call.tool, std::move(call.arguments));
  auto answer = co_await channel->request(std::move(request));
  co_return answer;
}

io::Task<Result<>> Client::renew(std::uint64_t stale) {
  while (renewing_) {
    auto woken = co_await renewed_.wait();
    PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
  }
  // Another call may have done it while this one waited for its answer.
  if (handshakes_ != stale) co_return Result<>();
  renewing_ = true;
  renewed_.reset();
  Result<> done;
  if (transport_ == Transport::stdio) {
    done = co_await open();
  } else {
    done = co_await initialize(Deadline::after(options_.connect_time));
  }
  renewing_ = false;
  renewed_.set();
  co_return done;
}

io::Task<Result<mcp::CallOutcome>> Client::call_tool(ToolCallRequest request) {
  std::uint64_t handshake = handshakes_;
  if (channel_->broken()) {
    auto renewed = co_await renew(handshake);
    PRIMS_CO_RETURN_ON_ERROR(renewed);
  }
  if (mirrors() && schemas_.empty()) {
    auto listed = co_await list_tools(request.deadline);
    if (!listed) co_return std::unexpected(listed.error());
  }
  handshake = handshakes_;
  auto answer = co_await attempt(request);
  if (!answer) co_return std::unexpected(answer.error());
  const bool session_lost = session_may_be_lost() && answer->status == 404;
  const bool headers_old =
      mirrors() && answer->response &&
      mcp::error_code_of(*answer->response) == static_cast<int>(mcp::RpcCode::header_mismatch);
  if (session_lost) {
    auto renewed = co_await renew(handshake);
    PRIMS_CO_RETURN_ON_ERROR(renewed);
  } else if (headers_old) {
    auto listed = co_await list_tools(request.deadline);
    if (!listed) co_return std::unexpected(listed.error());
  }
  if (session_lost || headers_old) answer = co_await attempt(std::move(request));
  if (!answer) co_return std::unexpected(answer.error());
  PRIMS_CO_ASSIGN_OR_RETURN(const json::Object result, result_in(*answer));
  co_return mcp::read_call_outcome(result);
}

io::Task<> Client::close() {
  const auto channel = std::exchange(channel_, nullptr);
  if (channel) co_await channel->close();
}

}  // namespace prims::upstream

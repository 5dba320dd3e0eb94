#include "server/result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "server/app.h"

namespace prims::server {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

std::string seconds(Milliseconds span) {
  return fmt::format("{:g}s", std::chrono::duration<double>(span).count());
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

// What an outcome means to the reader of a result.
struct Verdict {
  Status status = Status::ok;
  std::string message;
  json::Object evidence;
};

json::Object evidence(std::string_view unit, std::uint64_t limit, std::optional<std::uint64_t> peak,
                      std::string_view enforced_by) {
  json::Object out{{"limit", limit}};
  if (peak) out["peak"] = *peak;
  out["unit"] = unit;
  if (!enforced_by.empty()) out["enforced_by"] = enforced_by;
  return out;
}

std::uint64_t count(Milliseconds span) {
  return static_cast<std::uint64_t>(span.count());
}

Verdict of_exit(int code, const python::RunResult& run) {
  if (code == 0) return {Status::ok, "", {}};
  if (run.error) {
    const std::string text = run.error->message.empty() ? "" : ": " + run.error->message;
    return {Status::error, fmt::format("{}{}", run.error->type, text), {}};
  }
  return {Status::error, fmt::format("The program ended with exit status {}", code), {}};
}

Verdict of_signal(int number) {
  if (number == SIGSYS)
    return {Status::policy_violation, "The program used a system call that the sandbox forbids", {}};
  return {Status::killed,
          fmt::format("The program was ended by {} ({})", signal_name(number), ::strsignal(number)),
          {}};
}

Verdict verdict(const python::RunResult& run, const sandbox::Enforcement& enforcement) {
  return std::visit(
      Overloaded{
          [&](const sandbox::Exited& o) { return of_exit(o.code, run); },
          [&](const sandbox::Signalled& o) { return of_signal(o.signal); },
          [&](const sandbox::TimedOut& o) {
            return Verdict{Status::timeout, fmt::format("Execution timed out after {}", seconds(o.limit)),
                           evidence("ms", count(o.limit), count(run.timings.run), "wall clock")};
          },
          [&](const sandbox::OutOfMemory& o) {
            return Verdict{
                Status::memory_limit,
                fmt::format("The program used more memory than its limit of {}", to_string(o.limit)),
                evidence("bytes", o.limit.count, o.peak.count, enforcement.memory)};
          },
          [&](const sandbox::CpuTimeExceeded& o) {
            return Verdict{
                Status::cpu_limit,
                fmt::format("The program used more CPU time than its limit of {}", seconds(o.limit)),
                evidence("ms", count(o.limit), count(o.used), enforcement.cpu)};
          },
          [&](const sandbox::ProcessLimit& o) {
            return Verdict{Status::process_limit,
                           fmt::format("The program reached its limit of {} processes and threads", o.limit),
                           evidence("processes", o.limit, o.peak, enforcement.processes)};
          },
          [&](const sandbox::DiskLimit& o) {
            return Verdict{Status::disk_limit,
                           fmt::format("The workspace grew beyond its limit of {}", to_string(o.limit)),
                           evidence("bytes", o.limit.count, o.peak.count, "watchdog")};
          },
          [&](const sandbox::OutputLimit& o) {
            return Verdict{
                Status::output_limit,
                fmt::format("The program wrote more output than its limit of {}", to_string(o.limit)),
                evidence("bytes", o.limit.count, std::max(run.out.total_bytes, run.err.total_bytes), "")};
          },
          [](const sandbox::Cancelled&) { return Verdict{Status::cancelled, "The call was cancelled", {}}; },
          [](const sandbox::SetupFailed& o) {
            return Verdict{Status::sandbox_unavailable,
                           fmt::format("The sandbox could not be made: {}: {}", o.step, errno_text(o.error)),
                           {}};
          },
      },
      run.outcome);
}

// errno 27 is EFBIG (a single file beyond its limit), 28 ENOSPC.
bool is_full_disk(const python::PythonError& error) {
  return error.type == "OSError" &&
         (error.message.starts_with("[Errno 28]") || error.message.starts_with("[Errno 27]"));
}

std::string feedback_for(const Report& report, Status status) {
  if (!report.run) return "";
  const python::RunResult& run = *report.run;
  if (status == Status::ok && run.out.total_bytes == 0 && !run.value && run.note.empty()) {
    return "The program ran to its end and printed nothing. Show results with print(...), for example "
           "print(df.head()), "
           "or end the program with the expression to show. Files that should be reported go below output/. "
           "Every call is "
           "a script of its own.";
  }
  if (status == Status::error) {
    return "The program ended with an error. Mend the cause and send the whole program again: every call is "
           "a script of "
           "its own and starts without the variables of earlier calls.";
  }
  return "";
}

// Everything that helps with the next step: what was noted on the way, what went wrong between the program
// and us, and what a limit suggests.
std::string hint_for(const Report& report, Status status) {
  std::vector<std::string> parts;
  if (!report.hint.empty()) parts.push_back(report.hint);
  if (report.run && !report.run->note.empty()) {
    parts.push_back(
        fmt::format("The value and the error of the program could not be read: {}.", report.run->note));
  }
  if (const std::string_view next = advice(status); !next.empty()) parts.emplace_back(next);
  if (report.run && report.run->error && is_full_disk(*report.run->error)) {
    parts.emplace_back(
        "A file system of the sandbox is full: the settings workspace_size, tmp_size (/tmp) and shm_size "
        "(/dev/shm) hold their sizes.");
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string_view without_cut_end(std::string_view head) {
  head.remove_suffix(unfinished_tail(head));
  return head;
}

std::string_view without_cut_start(std::string_view tail) {
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0) == 0x80) tail.remove_prefix(1);
  return tail;
}

void add_stream(json::Object& out, std::string_view name, const python::Captured& captured) {
  const std::uint64_t shown = captured.head.size() + captured.tail.size();
  if (shown >= captured.total_bytes) {
    out[name] = to_utf8(captured.head + captured.tail);
    return;
  }
  const std::string_view head = without_cut_end(captured.head);
  const std::string_view tail = without_cut_start(captured.tail);
  out[name] = fmt::format("{}\n[... {} bytes left out ...]\n{}", to_utf8(head),
                          captured.total_bytes - head.size() - tail.size(), to_utf8(tail));
  if (!out.contains("truncated")) out["truncated"] = json::Object{};
  out["truncated"].as_object()[name] =
      json::Object{{"total_bytes", captured.total_bytes}, {"shown_bytes", head.size() + tail.size()}};
}

json::Object error_object(const python::PythonError& error) {
  json::Object out{{"type", error.type}, {"message", error.message}};
  if (error.line) out["line"] = *error.line;
  json::Array frames;
  for (const python::Frame& frame : error.frames) {
    frames.push_back(json::Object{{"line", frame.line}, {"name", frame.name}, {"file", frame.file}});
  }
  if (!frames.empty()) out["frames"] = std::move(frames);
  if (!error.traceback.empty()) out["traceback"] = error.traceback;
  return out;
}

json::Array artifact_list(const std::vector<session::Artifact>& artifacts) {
  json::Array out;
  for (const session::Artifact& a : artifacts) {
    out.push_back(json::Object{
        {"name", a.name}, {"relative_path", a.relative_path}, {"size", a.size}, {"mime", a.mime}});
  }
  return out;
}

void add_timings(json::Object& out, const Report& report) {
  json::Object timings;
  const auto add = [&](std::string_view name, Milliseconds span) { timings[name] = span.count(); };
  if (report.install.count() > 0) add("install", report.install);
  if (report.queue.count() > 0) add("queue", report.queue);
  if (report.run) {
    add("start", report.run->timings.start);
    add("run", report.run->timings.run);
    add("collect", report.collect);
  }
  if (!timings.empty()) out["timings"] = std::move(timings);
}

void add_run(json::Object& out, const Report& report, Verdict found) {
  const python::RunResult& run = *report.run;
  if (const auto* exited = std::get_if<sandbox::Exited>(&run.outcome)) out["exit_code"] = exited->code;
  const auto* limit = std::get_if<sandbox::ProcessLimit>(&run.outcome);
  if (limit != nullptr && limit->exit_code) out["exit_code"] = *limit->exit_code;
  if (const auto* signalled = std::get_if<sandbox::Signalled>(&run.outcome))
    out["signal"] = signal_name(signalled->signal);
  if (run.value) out["value"] = json::Object{{"text", run.value->text}, {"type", run.value->type}};
  if (run.error) out["error"] = error_object(*run.error);
  if (!found.evidence.empty()) {
    if (run.last_line) found.evidence["last_line"] = *run.last_line;
    out["evidence"] = std::move(found.evidence);
  }
}

void add_usage(json::Object& out, const sandbox::Usage& usage) {
  json::Object object{{"cpu_ms", usage.cpu.count()}};
  if (usage.peak_memory.count > 0) object["peak_memory_bytes"] = usage.peak_memory.count;
  if (usage.peak_processes > 0) object["processes"] = usage.peak_processes;
  if (usage.disk.count > 0) object["disk_bytes"] = usage.disk.count;
  out["usage"] = std::move(object);
}

void set_if(json::Object& out, std::string_view name, std::string_view text) {
  if (!text.empty()) out[name] = text;
}

}  // namespace

Status status_of(const Report& report) {
  if (report.run) return verdict(*report.run, report.enforcement).status;
  return report.status.value_or(Status::sandbox_unavailable);
}

json::Object to_json(const Report& report) {
  Verdict found{status_of(report), report.message, {}};
  if (report.run) found = verdict(*report.run, report.enforcement);
  const Status status = found.status;
  json::Object out{{"status", to_string(status)}};
  out["stdout"] = "";
  out["stderr"] = "";
  if (report.run) {
    add_stream(out, "stdout", report.run->out);
    add_stream(out, "stderr", report.run->err);
  }
  set_if(out, "message", status == Status::ok ? "" : found.message);
  set_if(out, "hint", hint_for(report, status));
  set_if(out, "feedback", feedback_for(report, status));
  set_if(out, "log", report.log);
  if (report.run) add_run(out, report, std::move(found));
  if (report.retry_after) out["evidence"] = json::Object{{"retry_after_ms", report.retry_after->count()}};
  out["artifacts"] = artifact_list(report.artifacts);
  set_if(out, "artifacts_incomplete", report.artifacts_incomplete);
  set_if(out, "run_id", report.run_id);
  add_timings(out, report);
  if (report.run) add_usage(out, report.run->usage);
  json::Object environment;
  set_if(environment, "python", report.python_version);
  set_if(environment, "lock", report.lock);
  if (!environment.empty()) out["environment"] = std::move(environment);
  set_if(out, "isolation", report.isolation);
  return out;
}

int exit_status_of(const Report& report) {
  if (!report.run) {
    return status_of(report) == Status::cancelled ? exit_status::kInterrupted : exit_status::kSandboxFailed;
  }
  return std::visit(
      Overloaded{
          [](const sandbox::Exited& o) { return o.code; },
          [](const sandbox::Signalled& o) { return exit_status::kSignalBase + o.signal; },
          [](const sandbox::ProcessLimit& o) { return o.exit_code.value_or(exit_status::kError); },
          [](const sandbox::TimedOut&) { return exit_status::kTimeout; },
          [](const sandbox::CpuTimeExceeded&) { return exit_status::kTimeout; },
          [](const sandbox::OutOfMemory&) { return exit_status::kOutOfMemory; },
          [](const sandbox::DiskLimit&) { return exit_status::kSignalBase + SIGXFSZ; },
          [](const sandbox::OutputLimit&) { return exit_status::kSignalBase + SIGXFSZ; },
          [](const sandbox::Cancelled&) { return exit_status::kInterrupted; },
          [](const sandbox::SetupFailed&) { return exit_status::kSandboxFailed; },
      },
      report.run->outcome);
}

json::Object result_schema() {
  static constexpr std::string_view kText = R"json({
    "type": "object",
    "properties": {
      "status": {"type": "string", "enum": ["ok", "error", "timeout", "memory_limit", "cpu_limit", "process_limit", "disk_limit",
        "output_limit", "killed", "cancelled", "policy_violation", "dependency_error", "invalid_argument", "sandbox_unavailable",
        "running"], "description": "what happened"},
      "stdout": {"type": "string", "description": "what the program printed; head and tail when long"},
      "stderr": {"type": "string"},
      "artifacts": {"type": "array", "description": "files that this run made or changed below output/", "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "relative_path": {"type": "string"}, "size": {"type": "integer"},
          "mime": {"type": "string"}},
        "required": ["name", "relative_path", "size", "mime"]}},
      "artifacts_incomplete": {"type": "string", "description": "why not every artifact is listed"},
      "message": {"type": "string", "description": "one sentence, when status is not ok"},
      "hint": {"type": "string", "description": "the exact next thing to do"},
      "feedback": {"type": "string", "description": "advice that fits what happened"},
      "log": {"type": "string", "description": "last lines of the package installer"},
      "exit_code": {"type": "integer"},
      "signal": {"type": "string"},
      "value": {"type": "object", "description": "value of the last expression",
        "properties": {"text": {"type": "string"}, "type": {"type": "string"}}, "required": ["text"]},
      "error": {"type": "object",
        "properties": {"type": {"type": "string"}, "message": {"type": "string"}, "line": {"type": "integer"},
          "frames": {"type": "array", "items": {"type": "object", "properties": {"line": {"type": "integer"},
            "name": {"type": "string"}, "file": {"type": "string"}}}},
          "traceback": {"type": "string"}},
        "required": ["type", "message"]},
      "evidence": {"type": "object",
        "properties": {"limit": {"type": "integer"}, "peak": {"type": "integer"}, "unit": {"type": "string"},
          "last_line": {"type": "integer"}, "enforced_by": {"type": "string"},
          "retry_after_ms": {"type": "integer"}}},
      "truncated": {"type": "object"},
      "run_id": {"type": "string"},
      "timings": {"type": "object", "description": "milliseconds"},
      "usage": {"type": "object"},
      "environment": {"type": "object"},
      "isolation": {"type": "string"}
    },
    "required": ["status", "stdout", "stderr", "artifacts"]
  })json";
  return boost::json::parse(kText).as_object();
}

}  // namespace prims::server

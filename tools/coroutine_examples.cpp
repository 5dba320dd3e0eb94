// Forms of co_await for tools/check_coroutines.py --self-test. A line marked `bad` must be found, every other
// one must not.
#include <coroutine>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

template <class T>
struct Task {
  struct promise_type {
    T value{};
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(T v) { value = std::move(v); }
    void unhandled_exception() { std::terminate(); }
  };
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  T await_resume() const { return {}; }
};

struct Request {
  std::string method;
  std::shared_ptr<int> body;
};
struct Built {
  explicit Built(std::string text) : text(std::move(text)) {}
  std::string text;
};

Task<bool> send(Request request) {
  co_return !request.method.empty();
}
Task<bool> send_text(std::string text) {
  co_return text.empty();
}
Task<bool> send_built(Built built) {
  co_return built.text.empty();
}
Task<bool> send_all(std::initializer_list<std::string> texts) {
  co_return texts.size() > 0;
}
template <class F>
Task<bool> offload(F f) {
  co_return f() > 0;
}
Request make_request() {
  return {};
}

Task<bool> allowed(std::shared_ptr<int> body) {
  Request request{"ping", body};
  bool sent = co_await send(std::move(request));
  sent = co_await send(make_request());
  co_await send_text("a literal");
  co_await send_built(Built("text"));
  const auto count = [body] { return *body; };
  co_await offload(count);
  co_await offload([] { return 1; });
  if (const bool again = co_await send_text("x"); again) sent = again;
  while (sent) sent = co_await send_text("y");
  for (int i = 0; i < 2; ++i) co_await send_text("z");
  const std::string text = sent ? "a" : "b";
  co_await send_text(text);
  co_return co_await send_text("end");
}

Task<bool> forbidden(std::shared_ptr<int> body, bool which) {
  co_await send({.method = "ping", .body = body});               // bad
  co_await send(Request{"ping", body});                          // bad
  co_await send_all({"a", "b"});                                 // bad
  co_await offload([body] { return *body; });                    // bad
  co_await offload([&] { return which ? 1 : 0; });               // bad
  co_await send_text(which ? std::string("a") : std::string());  // bad
  bool sent = which ? co_await send_text("a") : false;           // bad
  sent = which && co_await send_text("b");                       // bad
  sent = co_await send_text("c") || which;                       // bad
  if (co_await send_text("d")) sent = false;                     // bad
  if (!co_await send_text("e")) sent = false;                    // bad
  if (bool ok = co_await send_text("f")) sent = ok;              // bad
  while (co_await send_text("g")) {                              // bad
  }
  do {  // bad
    sent = which;
  } while (co_await send_text("h"));
  for (; co_await send_text("i");) {  // bad
  }
  switch (co_await send_text("j")) {  // bad
    default:
      break;
  }
  co_return sent;
}

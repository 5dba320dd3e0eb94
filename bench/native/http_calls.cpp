// Calls over HTTP: at a fixed rate whatever the answers do, or by a number of clients that each wait for
// theirs.
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <sstream>
#include <vector>

#include "commands.h"
#include "http.h"
#include "text.h"

namespace bench {
namespace {

struct Client {
  int fd = -1;
  Answer answer;
  Nanoseconds started = 0;
  std::uint32_t unique = 0;
};

// The one of --request, or those of --requests, which have a zero byte between them.
std::vector<std::string> read_requests(const Options& options) {
  const std::string one = options.text("request");
  if (!one.empty()) return {read_file(one)};
  std::istringstream text(read_file(options.text("requests")));
  std::vector<std::string> requests;
  for (std::string request; std::getline(text, request, '\0');) requests.push_back(request);
  if (requests.empty()) give_up("no requests");
  return requests;
}

class HttpCalls {
 public:
  explicit HttpCalls(const Options& options)
      : port_(static_cast<int>(options.number("port", 0))),
        requests_(read_requests(options)),
        expected_(options.text("expect")),
        schedule_(options.schedule()),
        duration_(options.number("seconds", 0) * 1'000'000'000),
        left_to_warm_up_(options.warm_up()),
        give_up_at_(now() + options.number("limit", 600) * 1'000'000'000),
        samples_(options.warm_up()) {
    const std::int64_t clients = options.number("clients", 1);
    for (std::int64_t i = 0; i < clients; ++i) idle_.push_back(open());
    if (duration_ > 0) schedule_.count = INT64_MAX;
    if (left_to_warm_up_ == 0) begin_measuring();
  }

  Samples run() {
    if (schedule_.start > now()) sleep_until(schedule_.start);
    while (start_what_is_due() || busy_ > 0) wait_for_answers();
    return samples_;
  }

 private:
  Client* open() {
    clients_.push_back(std::make_unique<Client>());
    Client* client = clients_.back().get();
    client->fd = connect_to(port_);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = client}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, client->fd, &event) != 0) give_up_with_errno("epoll_ctl");
    return client;
  }

  void begin_measuring() {
    if (duration_ > 0) end_ = now() + duration_;
  }

  bool paced() const { return schedule_.period > 0; }

  // Whether there is more to start.
  bool start_what_is_due() {
    while (begun_ < schedule_.count && (end_ == 0 || now() < end_)) {
      const Nanoseconds due = paced() ? schedule_.due(begun_) : 0;
      if (due > now()) return true;
      if (idle_.empty()) {
        if (!paced()) return true;
        idle_.push_back(open());  // an open loop never waits for an answer before it asks again
      }
      Client* client = idle_.front();
      idle_.pop_front();
      start(client);
    }
    return false;
  }

  void start(Client* client) {
    ++begun_;
    ++busy_;
    client->unique = next_unique();
    const std::string text =
        with_unique(requests_[static_cast<std::size_t>(begun_) % requests_.size()], client->unique);
    client->started = now();
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t written = ::write(client->fd, text.data() + sent, text.size() - sent);
      if (written < 0 && errno != EAGAIN) return fail(client, "the server closed the connection");
      if (written > 0) sent += static_cast<std::size_t>(written);
    }
  }

  void wait_for_answers() {
    if (now() > give_up_at_) give_up("no end within the time limit");
    epoll_event events[64];
    Nanoseconds patience = 1'000'000'000;
    if (paced() && begun_ < schedule_.count)
      patience = std::max<Nanoseconds>(0, schedule_.due(begun_) - now());
    const timespec timeout{.tv_sec = patience / 1'000'000'000, .tv_nsec = patience % 1'000'000'000};
    const int ready = ::epoll_pwait2(epoll_, events, 64, &timeout, nullptr);
    for (int i = 0; i < ready; ++i) receive(static_cast<Client*>(events[i].data.ptr));
  }

  void receive(Client* client) {
    const ssize_t got = ::read(client->fd, buffer_.data(), buffer_.size());
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fail(client, "the server closed the connection");
    client->answer.add({buffer_.data(), static_cast<std::size_t>(got)});
    if (!client->answer.complete()) return;
    const Nanoseconds ended = now();
    const std::string& bytes = client->answer.bytes();
    if (client->answer.ok() && holds(bytes, expected_, client->unique)) {
      samples_.add(client->started, ended);
    } else {
      samples_.add_failure(bytes);
    }
    client->answer.clear();
    client->started = 0;
    finish_call();
    idle_.push_back(client);
  }

  void finish_call() {
    --busy_;
    if (left_to_warm_up_ > 0 && --left_to_warm_up_ == 0) begin_measuring();
  }

  void fail(Client* client, const std::string& why) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, client->fd, nullptr);
    ::close(client->fd);
    const bool was_busy = client->started != 0;
    if (!was_busy) {
      std::erase(idle_, client);
    } else {
      samples_.add_failure(why);
      finish_call();
    }
    idle_.push_back(open());
  }

  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const int port_;
  const std::vector<std::string> requests_;  ///< sent in turn
  const std::string expected_;
  Schedule schedule_;
  const Nanoseconds duration_;  ///< of the measurement after the warm-up; 0: as many calls as are scheduled
  std::int64_t left_to_warm_up_;
  Nanoseconds end_ = 0;
  const Nanoseconds give_up_at_;
  Samples samples_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<Client*> idle_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::int64_t begun_ = 0;
  int busy_ = 0;
};

}  // namespace

Samples http_calls(const Options& options) {
  return HttpCalls(options).run();
}

}  // namespace bench

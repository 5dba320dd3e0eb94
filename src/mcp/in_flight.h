// The calls that run now: registered before they are dispatched, gone on every way out, found by id to be
// cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "mcp/request_id.h"
#include "mcp/rpc_error.h"

namespace prims::mcp {

class InFlight;

/// One running call's place in the table, which it leaves when the ticket is destroyed.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Ticket& operator=(Ticket&& other) noexcept {
    Ticket taken(std::move(other));
    std::swap(entry_, taken.entry_);
    return *this;
  }
  ~Ticket();

  /// What cancelling the call does. Called once at most, also when the cancellation came before this was set.
  void on_cancel(std::function<void()> action);

 private:
  friend class InFlight;
  struct Entry;
  explicit Ticket(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  std::shared_ptr<Entry> entry_;  // shared with the table, which may end before a call does
};

/// Keyed by who asked (a session, a connection) and the id, type included.
class InFlight {
 public:
  struct Limits {
    std::size_t all = 1024;
    std::size_t per_scope = 128;
  };

  explicit InFlight(Limits limits);
  ~InFlight();

  /// Refused when the id is already in use in `scope`, or when too many calls run.
  std::expected<Ticket, Refusal> admit(const std::string& scope, const RequestId& id);
  /// A call that nothing can name: a modern HTTP request, which its connection stands for.
  std::expected<Ticket, Refusal> admit_unnamed();

  /// An id that does not run is no error: the result and the cancellation may cross.
  void cancel(const std::string& scope, const RequestId& id);
  void cancel_scope(const std::string& scope);
  void cancel_all();

  std::size_t size() const;
  bool busy(const std::string& scope) const;

 private:
  friend class Ticket;
  using Key = std::pair<std::string, RequestId>;
  using Table = std::map<Key, std::shared_ptr<Ticket::Entry>>;
  std::expected<Ticket, Refusal> insert(Key key);
  void cancel_range(Table::iterator from, Table::iterator to);

  Limits limits_;
  std::shared_ptr<Table> table_;
  std::int64_t unnamed_ = 0;
};

}  // namespace prims::mcp

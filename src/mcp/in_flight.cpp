#include "mcp/in_flight.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace prims::mcp {

struct Ticket::Entry {
  std::weak_ptr<InFlight::Table> table;
  InFlight::Table::iterator place;
  std::function<void()> action;
  bool cancelled = false;

  void cancel() {
    if (std::exchange(cancelled, true)) return;
    if (const auto act = std::exchange(action, nullptr)) act();
  }
};

Ticket::~Ticket() {
  if (!entry_) return;
  if (const auto table = entry_->table.lock()) table->erase(entry_->place);
}

void Ticket::on_cancel(std::function<void()> action) {
  if (!entry_) return;
  if (entry_->cancelled) {
    action();
  } else {
    entry_->action = std::move(action);
  }
}

InFlight::InFlight(Limits limits) : limits_(limits), table_(std::make_shared<Table>()) {}

InFlight::~InFlight() = default;

std::expected<Ticket, Refusal> InFlight::admit(const std::string& scope, const RequestId& id) {
  Key key{scope, id};
  if (table_->contains(key)) {
    return std::unexpected(
        refuse(RpcCode::invalid_request, fmt::format("a request with the id {} is in flight", id.text())));
  }
  const RequestId lowest(std::numeric_limits<std::int64_t>::min());
  std::size_t count = 0;
  for (auto it = table_->lower_bound(Key{scope, lowest}); it != table_->end() && it->first.first == scope;
       ++it)
    ++count;
  if (count >= limits_.per_scope) {
    return std::unexpected(
        refuse(RpcCode::internal_error,
               fmt::format("{} calls of this client run already; try again when one has ended", count), 503));
  }
  return insert(std::move(key));
}

std::expected<Ticket, Refusal> InFlight::admit_unnamed() {
  return insert(Key{"", RequestId(++unnamed_)});
}

std::expected<Ticket, Refusal> InFlight::insert(Key key) {
  if (table_->size() >= limits_.all) {
    return std::unexpected(
        refuse(RpcCode::internal_error,
               fmt::format("{} calls run already; try again when one has ended", table_->size()), 503));
  }
  auto entry = std::make_shared<Ticket::Entry>();
  entry->table = table_;
  entry->place = table_->emplace(std::move(key), entry).first;
  return Ticket(std::move(entry));
}

void InFlight::cancel_range(Table::iterator from, Table::iterator to) {
  // An action may end its call and with it the entry, so the entries are held apart from the table.
  std::vector<std::shared_ptr<Ticket::Entry>> entries;
  for (auto it = from; it != to; ++it) entries.push_back(it->second);
  for (const auto& entry : entries) entry->cancel();
}

void InFlight::cancel(const std::string& scope, const RequestId& id) {
  const auto [from, to] = table_->equal_range(Key{scope, id});
  cancel_range(from, to);
}

void InFlight::cancel_scope(const std::string& scope) {
  auto from = table_->lower_bound(Key{scope, RequestId(std::numeric_limits<std::int64_t>::min())});
  auto to = from;
  while (to != table_->end() && to->first.first == scope) ++to;
  cancel_range(from, to);
}

void InFlight::cancel_all() {
  cancel_range(table_->begin(), table_->end());
}

std::size_t InFlight::size() const {
  return table_->size();
}

bool InFlight::busy(const std::string& scope) const {
  const auto it = table_->lower_bound(Key{scope, RequestId(std::numeric_limits<std::int64_t>::min())});
  return it != table_->end() && it->first.first == scope;
}

}  // namespace prims::mcp

// Which environments have a template and waiting guests, and how many: by use, within bounds.
//
// An environment gets a template after its first use. The least recently used one goes when the memory is
// needed for another; one that dies is made again, one that cannot be made is tried less and less often. An
// environment that was used within the last minute has guests waiting; of the others only the last one used
// keeps one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/scope.h"
#include "python/ahead.h"
#include "python/stock.h"

namespace prims::python {

class Templates {
 public:
  using Now = std::function<Clock::time_point()>;

  /// Both outlive it. stop() comes before its end.
  Templates(io::Executor executor, sandbox::Host& host, layers::Interpreter interpreter,
            WorkspaceSource workspaces, WarmOptions options, Now now = Clock::now);
  Templates(const Templates&) = delete;
  Templates& operator=(const Templates&) = delete;

  /// For a call that is about to run.
  std::shared_ptr<Stock> stock_for(const layers::Layer& layer, const RunLimits& limits, Weight weight);

  /// The call does not need this machine's attention any more: now is the time to fork the next guest, or to
  /// make a template.
  void served(std::shared_ptr<Stock> stock, const layers::Layer& layer);

  /// Looks after what no call touches. Called now and then.
  void tend();

  /// Ends everything.
  io::Task<Result<>> stop(Deadline deadline);

 private:
  struct Entry {
    std::shared_ptr<Stock> stock;
    Weight weight = Weight::light;
    Clock::time_point used;
    Clock::time_point made;   ///< the template
    Clock::time_point retry;  ///< no template is tried before
    std::uint32_t failures = 0;
    Bytes memory;                        ///< of the template, as expected; 0: none
    std::optional<layers::Layer> layer;  ///< that has a template or is to get one
  };

  static io::Task<> make(Templates* self, std::shared_ptr<Stock> stock, sandbox::TemplateSpec spec,
                         layers::Layer layer);
  static io::Task<> tend_on(Templates* self);

  Entry* find(const std::string& name);
  void ask_for_template(Entry& entry, const layers::Layer& layer);
  void make_next();
  bool make_room_for(const Entry& entry, Bytes needed);
  void give_up(Entry& entry, const std::string& reason);
  void drop(Entry& entry);
  void fill(Entry& entry);
  void forget_oldest();

  sandbox::Host& host_;
  const layers::Interpreter interpreter_;
  const WorkspaceSource workspaces_;
  const WarmOptions options_;
  const Now now_;
  io::TaskScope makers_;
  io::TaskScope enders_;
  std::vector<Entry> entries_;  // most recently used last
  bool making_ = false;         // one at a time
  bool tending_ = false;
  bool stopped_ = false;
};

}  // namespace prims::python

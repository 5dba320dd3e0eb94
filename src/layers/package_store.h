// The Store: requirements to resolution to layer, each remembered, each made once.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/event.h"
#include "io/scope.h"
#include "io/workers.h"
#include "layers/index_settings.h"
#include "layers/installer.h"
#include "layers/key_lock.h"
#include "layers/requirements.h"
#include "layers/resolutions.h"
#include "layers/shelf.h"
#include "layers/store.h"
#include "layers/workshop.h"

namespace prims::layers {

class PackageStore final : public Store {
 public:
  PackageStore(StoreOptions options, IndexSettings indexes, sandbox::Host& host, io::Workers& workers);

  io::Task<Result<Outcome>> get(Request request, Progress progress) override;
  std::optional<Layer> find(const Request& request) override;
  io::Task<Result<Layer>> plain() override;
  io::Task<Result<>> stop(Deadline deadline) override;
  const Interpreter& interpreter() const override { return options_.interpreter; }

 private:
  /// What one caller or several wait for.
  struct Flight {
    io::Event done;
    std::optional<Result<Outcome>> answer;
    std::list<Progress> listeners;
    std::string last_report;

    void report(const std::string& text);
  };
  class Listening;

  struct Wish {
    RequirementSet set;
    bool with_base = false;
    std::string key;
  };

  Wish wish_for(RequirementSet set, Base base) const;
  std::optional<Layer> find_known(const Wish& wish);
  /// The same, and a layer of an earlier boot is checked first.
  io::Task<Result<std::optional<Layer>>> find_checked(std::string hash);
  io::Task<Result<Layer>> publish(std::shared_ptr<BuildDirectory> build, std::string hash,
                                  std::vector<std::string> packages, TreeSize size);
  std::string base_lines(const Wish& wish) const;

  std::shared_ptr<Flight> join(const Wish& wish, const io::Executor& executor);
  io::Task<> fly(Wish wish, std::shared_ptr<Flight> flight);
  io::Task<Result<Outcome>> make(Wish wish, std::shared_ptr<Flight> flight);
  io::Task<Result<Outcome>> make_with(Wish wish, std::vector<std::string> indexes,
                                      std::shared_ptr<Flight> flight, Deadline deadline);
  io::Task<Result<std::variant<Resolution, DependencyError>>> resolution_for(Wish wish,
                                                                             std::vector<std::string> indexes,
                                                                             Deadline deadline);
  io::Task<Result<std::variant<Resolution, Diagnosis>>> resolve(Wish wish, std::vector<std::string> indexes,
                                                                Deadline deadline);
  io::Task<Result<Outcome>> layer_for(Resolution resolution, std::vector<std::string> indexes,
                                      std::shared_ptr<Flight> flight, Deadline deadline);
  io::Task<Result<Outcome>> build(Resolution resolution, std::vector<std::string> indexes,
                                  std::shared_ptr<Flight> flight, Deadline deadline);
  io::Task<Result<std::vector<std::string>>> ready_indexes(std::shared_ptr<Flight> flight, Deadline deadline);
  io::Task<Result<>> ready_uv(std::shared_ptr<Flight> flight, Deadline deadline);
  io::Task<Result<KeyLock>> lock_for(std::string key, std::shared_ptr<Flight> flight, Deadline deadline);
  /// Uses nothing of the store, which it may outlive.
  static io::Task<> keep_house(io::Workers* workers, std::filesystem::path state, Bytes limit,
                               std::shared_ptr<BuildDirectory> leftovers);
  std::filesystem::path lock_file() const { return options_.state / "locks/packages"; }

  StoreOptions options_;
  IndexSettings index_settings_;
  io::Workers& workers_;
  Shelf shelf_;
  Resolutions resolutions_;
  Workshop workshop_;
  Installer installer_;
  std::optional<std::vector<std::string>> indexes_;  // what is really asked, once known
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  std::shared_ptr<io::Channel<int>>
      building_;  // one item for each layer that is being made: a bound on how many
  bool swept_ = false;
  std::optional<io::TaskScope> tasks_;  // from the first flight on
};

}  // namespace prims::layers

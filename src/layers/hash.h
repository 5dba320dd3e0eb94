// SHA-256, for names of layers and for checking what was downloaded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims::layers {

/// For what comes in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::string_view data);
  /// Once, after the last piece.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view data);

/// Of a whole file, read in pieces.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

}  // namespace prims::layers

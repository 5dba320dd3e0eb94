#include "cli/explanation.h"

namespace prims::cli {

std::vector<std::string> explanation(const json::Object& result) {
  std::vector<std::string> sentences;
  const std::string status = json::string_field(result, "status").value_or("");
  // Of an uncaught exception the program's own traceback speaks.
  const bool spoke_itself = status == "ok" || status == "error";
  if (const auto message = json::string_field(result, "message"); message && !spoke_itself) {
    sentences.push_back(*message);
  }
  if (const auto hint = json::string_field(result, "hint")) sentences.push_back("hint: " + *hint);
  return sentences;
}

}  // namespace prims::cli

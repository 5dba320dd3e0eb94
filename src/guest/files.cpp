#include "guest/files.h"

#include <array>

namespace prims::guest {
namespace {

constexpr char kDriver[] = {
#embed "driver.py"
};
constexpr char kChannel[] = {
#embed "channel.py"
};
constexpr char kReport[] = {
#embed "report.py"
};
constexpr char kSurroundings[] = {
#embed "surroundings.py"
};

constexpr std::array kFiles = {
    File{"driver.py", {kDriver, sizeof kDriver}},
    File{"channel.py", {kChannel, sizeof kChannel}},
    File{"report.py", {kReport, sizeof kReport}},
    File{"surroundings.py", {kSurroundings, sizeof kSurroundings}},
};

}  // namespace

std::span<const File> files() {
  return kFiles;
}

}  // namespace prims::guest

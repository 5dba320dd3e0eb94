#include "guest/files.h"

#include <algorithm>
#include <array>

#include "guest/forking_image.h"

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
constexpr char kTemplate[] = {
#embed "template.py"
};
constexpr char kPreload[] = {
#embed "preload.py"
};
constexpr char kStandby[] = {
#embed "standby.py"
};
constexpr char kEnding[] = {
#embed "ending.py"
};
constexpr char kResourceUse[] = {
#embed "resource_use.py"
};

constexpr std::array kSources = {
    File{"driver.py", {kDriver, sizeof kDriver}},
    File{"channel.py", {kChannel, sizeof kChannel}},
    File{"report.py", {kReport, sizeof kReport}},
    File{"surroundings.py", {kSurroundings, sizeof kSurroundings}},
    File{"template.py", {kTemplate, sizeof kTemplate}},
    File{"preload.py", {kPreload, sizeof kPreload}},
    File{"standby.py", {kStandby, sizeof kStandby}},
    File{"ending.py", {kEnding, sizeof kEnding}},
    File{"resource_use.py", {kResourceUse, sizeof kResourceUse}},
};

}  // namespace

std::span<const File> files() {
  static const auto all = [] {
    std::array<File, kSources.size() + 1> files;
    *std::ranges::copy(kSources, files.begin()).out = {"forking.abi3.so", forking_image()};
    return files;
  }();
  return all;
}

}  // namespace prims::guest

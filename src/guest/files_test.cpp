#include "guest/files.h"

#include <gtest/gtest.h>

namespace prims::guest {
namespace {

TEST(Files, BeginWithTheOneToStart) {
  ASSERT_FALSE(files().empty());
  EXPECT_EQ(files().front().name, "driver.py");
}

TEST(Files, AreWholePythonSourcesAndOneModule) {
  for (const File& file : files()) {
    if (file.name.ends_with(".so")) {
      EXPECT_TRUE(
          file.content.starts_with("\x7f"
                                   "ELF"));
      continue;
    }
    EXPECT_TRUE(file.content.starts_with("\"\"\"")) << file.name;
    EXPECT_TRUE(file.content.ends_with("\n")) << file.name;
    EXPECT_EQ(file.content.find('\0'), std::string_view::npos) << file.name;
  }
}

}  // namespace
}  // namespace prims::guest

#include "python/ahead.h"

#include <gmock/gmock.h>

namespace prims::python {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

const std::vector<std::string> kBase = {"numpy==2.4.6", "pandas==3.0.0", "python-dateutil==2.9",
                                        "some-Tool==1.0"};

Weight weight_of(std::string_view code, std::vector<std::string> packages) {
  layers::Layer layer;
  layer.packages = std::move(packages);
  return Scales().weigh(code, layer);
}

TEST(Ahead, KnowsWhatAHeavyTemplateImports) {
  const Ahead ahead = imports_ahead(kBase, Weight::heavy);
  EXPECT_THAT(ahead.modules, Contains("numpy"));
  EXPECT_THAT(ahead.modules, Contains("pandas"));
  EXPECT_GT(ahead.memory, imports_ahead({}, Weight::heavy).memory);
}

TEST(Ahead, ALightTemplateImportsNoPackage) {
  EXPECT_THAT(imports_ahead(kBase, Weight::light).modules, IsEmpty());
  EXPECT_EQ(imports_ahead(kBase, Weight::light).memory, imports_ahead({}, Weight::heavy).memory);
}

TEST(Ahead, ProgramsThatNameAPackageGetTheHeavyOne) {
  for (const char* code :
       {"import numpy as np", "from pandas import DataFrame", "__import__('numpy')", "import some_Tool"})
    EXPECT_EQ(weight_of(code, kBase), Weight::heavy) << code;
  for (const char* code : {"print(1)", "import json", "numpys = 1"})
    EXPECT_EQ(weight_of(code, kBase), Weight::light) << code;
  EXPECT_EQ(weight_of("import numpy", {}), Weight::light);
}

}  // namespace
}  // namespace prims::python

#include "python/module_names.h"

#include <gtest/gtest.h>

namespace prims::python {
namespace {

TEST(ModuleNames, AProgramThatNamesABasePackageNeedsIt) {
  const std::vector<std::string> base = {"numpy>=1", "pandas", "python-slugify[x]", "matplotlib"};
  const auto modules = modules_of(base);
  for (const char* code :
       {"import numpy", "from pandas import DataFrame", "__import__('numpy')", "import os, numpy as np",
        "importlib.import_module(\"PIL.Image\")", "import python_slugify", "x = 1; import pandas.io"}) {
    EXPECT_TRUE(mentions_any(code, modules)) << code;
  }
  for (const char* code : {"", "print('hi')", "numpy_like = 1", "import mynumpy", "import json"}) {
    EXPECT_FALSE(mentions_any(code, modules)) << code;
  }
}

}  // namespace
}  // namespace prims::python

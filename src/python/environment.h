// What a guest finds around it: the file tree, the environment variables, the command that starts the driver.
#pragma once

#include <string>
#include <vector>

#include "layers/store.h"
#include "python/runner.h"
#include "sandbox/sandbox.h"

namespace prims::python {

inline constexpr const char* kProgramFile = "/sandbox/run/main.py";

/// The sandbox before any call: root with interpreter and driver, limits.
sandbox::PrepareSpec prepare_spec(const layers::Interpreter& interpreter, const RunLimits& limits);

std::vector<sandbox::Attachment> attachments(const std::string& workspace, const layers::Layer& layer);

/// The interpreter of the layer with the driver in it; descriptors are the caller's to add.
sandbox::StartSpec start_spec(const sandbox::Limits& limits, const sandbox::Enforcement& enforcement);

}  // namespace prims::python

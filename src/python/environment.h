// What a guest finds around it: the file tree, the environment variables, the command that starts the driver.
#pragma once

#include <string>
#include <vector>

#include "layers/store.h"
#include "python/ahead.h"
#include "python/runner.h"
#include "sandbox/sandbox.h"

namespace prims::python {

inline constexpr const char* kProgramFile = "/sandbox/run/main.py";

/// The sandbox before any call: root with interpreter and driver, limits.
sandbox::PrepareSpec prepare_spec(const layers::Interpreter& interpreter, const RunLimits& limits);

sandbox::Attachment workspace_attachment(const Workspace& workspace);
sandbox::Attachment layer_attachment(const layers::Layer& layer);

/// The interpreter of the layer with the driver in it; descriptors are the caller's to add.
sandbox::StartSpec start_spec(const sandbox::Limits& limits, const sandbox::Enforcement& enforcement);

/// A template whose forks are what prepare_spec() and start_spec() give, with modules imported ahead. Its
/// output descriptors are the caller's to add.
sandbox::TemplateSpec template_spec(const layers::Interpreter& interpreter, const layers::Layer& layer,
                                    const RunLimits& limits, const sandbox::Enforcement& enforcement,
                                    const Ahead& ahead);

}  // namespace prims::python

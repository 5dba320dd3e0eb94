// Unguessable names. Every handle, session id and run id comes from here.
#pragma once

#include <string>

namespace prims {

/// `bytes` random bytes of the kernel (man 2 getrandom) as URL-safe base64 without padding: [A-Za-z0-9_-].
/// 16 bytes (128 bits, 22 characters) is the least for anything that grants access.
std::string random_token(std::size_t bytes = 16);

}  // namespace prims

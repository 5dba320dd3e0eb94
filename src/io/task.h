// Coroutines of this program. One thread runs the loop; a Task runs on it and never blocks.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace prims::io {

template <class T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace prims::io

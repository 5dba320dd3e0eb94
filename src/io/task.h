// Coroutines of this program. One thread runs the loop; a Task runs on it and never blocks.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/result.h"

namespace prims::io {

template <class T = void>
using Task = boost::asio::awaitable<T>;

/// Names the loop that work belongs to; cheap to copy.
using Executor = boost::asio::any_io_executor;

/// `const io::Executor executor = co_await io::this_executor;` in a Task: the loop it runs on.
inline constexpr auto this_executor = boost::asio::this_coro::executor;

}  // namespace prims::io

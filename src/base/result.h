// Errors as values.
//
// `Result<T>` is what a function returns that can fail for reasons its caller should handle. An Error says
// what the caller can do about it (Kind) and one sentence for a person. What a sandboxed program did is an
// outcome, not an Error. Exceptions are for bugs and exhausted memory only.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace prims {

/// What the caller can do. Mapped once each to JSON-RPC, HTTP and exit codes.
enum class Kind {
  invalid_input,  ///< the caller's data is wrong; `message` says what and how to mend it
  not_found,      ///< the thing named does not exist
  denied,         ///< not allowed here
  exhausted,      ///< a limit or a resource of the machine is used up
  timed_out,      ///< a deadline passed
  cancelled,      ///< the caller, or its disappearance, ended the operation
  unavailable,    ///< something outside is missing or broken; trying later may help
  internal,       ///< a bug of ours
};

struct Error {
  Kind kind = Kind::internal;
  std::string message;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Kind kind, std::string message) {
  return std::unexpected(Error{kind, std::move(message)});
}

/// An Error from errno: "open /x: Permission denied". The kind follows the code (ENOENT not_found, EACCES and
/// EPERM denied, ENOSPC, EDQUOT, EMFILE, ENFILE, EAGAIN and ENOMEM exhausted, EINVAL invalid_input, otherwise
/// unavailable).
std::unexpected<Error> fail_errno(std::string_view what, int code = errno);

/// The kernel's words for an errno value.
std::string errno_text(int code);

}  // namespace prims

#define PRIMS_CAT_(a, b) a##b
#define PRIMS_CAT(a, b) PRIMS_CAT_(a, b)
#define PRIMS_AOR_(tmp, lhs, expr, ret)                  \
  auto tmp = (expr);                                     \
  if (!tmp) ret std::unexpected(std::move(tmp).error()); \
  lhs = *std::move(tmp)
#define PRIMS_ROE_(tmp, expr, ret) \
  if (auto tmp = (expr); !tmp) ret std::unexpected(std::move(tmp).error())

/// `PRIMS_ASSIGN_OR_RETURN(auto fd, open_it(path));` hands an Error on to the caller. A statement, never
/// inside an expression.
#define PRIMS_ASSIGN_OR_RETURN(lhs, expr) PRIMS_AOR_(PRIMS_CAT(result_, __LINE__), lhs, expr, return)
#define PRIMS_RETURN_ON_ERROR(expr) PRIMS_ROE_(PRIMS_CAT(result_, __LINE__), expr, return)
/// In coroutines. Name the awaited result first: `auto got = co_await f(); PRIMS_CO_ASSIGN_OR_RETURN(auto x,
/// std::move(got));`
#define PRIMS_CO_ASSIGN_OR_RETURN(lhs, expr) PRIMS_AOR_(PRIMS_CAT(result_, __LINE__), lhs, expr, co_return)
#define PRIMS_CO_RETURN_ON_ERROR(expr) PRIMS_ROE_(PRIMS_CAT(result_, __LINE__), expr, co_return)

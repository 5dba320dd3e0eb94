// HTTP messages as plain data, shared by server and client.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prims::http {

struct Field {
  std::string name;
  std::string value;
};

/// Header fields in their order of arrival. Names compare without regard to case; repeated fields stay
/// visible.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void add(std::string name, std::string value) { fields_.push_back({std::move(name), std::move(value)}); }
  /// Replaces every field of this name.
  void set(std::string name, std::string value);
  void remove(std::string_view name);

  /// The first field of this name, without white space around it.
  std::optional<std::string_view> get(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  /// Whether a comma-separated field ("Connection: keep-alive, TE") names this token, case ignored.
  bool has_token(std::string_view name, std::string_view token) const;

  /// Whether every name is a token and no value holds a control character, so that nothing can be smuggled
  /// into a message.
  bool well_formed() const;

  void clear() { fields_.clear(); }
  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

bool iequals(std::string_view a, std::string_view b);

struct Request {
  std::string method;
  std::string target;  ///< as sent: "/mcp?x=1"; absolute-form and "*" are not rewritten
  Headers headers;
  std::string body;  ///< complete, chunked coding removed
  std::string peer;  ///< address of the other end, "127.0.0.1"

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  /// Without "?"; empty when there is none.
  std::string_view query() const;
};

struct Response {
  int status = 200;
  Headers headers;  ///< framing, Connection and Date are the server's business
  std::string body;
};

std::string_view reason_phrase(int status);

}  // namespace prims::http

#include "json/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prims::json {
namespace {

using Fault = std::optional<std::string>;

constexpr int kDeepest = 64;

bool has_type(const Value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type != "integer") return false;
  if (value.is_double()) return std::trunc(value.get_double()) == value.get_double();
  return value.is_number();
}

class Checker {
 public:
  explicit Checker(const Value& root) : root_(root) {}

  Fault check(const Value& schema, const Value& value, const std::string& at, int depth) const {
    if (depth > kDeepest) return fmt::format("{}: the schema is nested too deeply", at);
    if (schema.is_bool()) return schema.get_bool() ? Fault() : fmt::format("{}: nothing is allowed here", at);
    const Object* rules = schema.if_object();
    if (rules == nullptr) return fmt::format("{}: the schema is no object", at);
    for (const auto part : {&Checker::reference, &Checker::own_type, &Checker::alternatives,
                            &Checker::members, &Checker::elements, &Checker::range}) {
      if (Fault fault = (this->*part)(*rules, value, at, depth)) return fault;
    }
    return std::nullopt;
  }

 private:
  Fault reference(const Object& rules, const Value& value, const std::string& at, int depth) const {
    const auto ref = string_field(rules, "$ref");
    if (!ref) return std::nullopt;
    if (!ref->starts_with("#")) return fmt::format("{}: {} is not a local reference", at, *ref);
    boost::json::error_code error;
    const Value* target = root_.find_pointer(ref->substr(1), error);
    if (target == nullptr) return fmt::format("{}: {} is not defined", at, *ref);
    return check(*target, value, at, depth + 1);
  }

  Fault own_type(const Object& rules, const Value& value, const std::string& at, int) const {
    if (const Value* wanted = find(rules, "const"); wanted != nullptr && *wanted != value) {
      return fmt::format("{}: {} is not {}", at, write(value), write(*wanted));
    }
    if (const Array* choices = array_field(rules, "enum")) {
      if (std::ranges::find(*choices, value) == choices->end()) {
        return fmt::format("{}: {} is not one of {}", at, write(value), write(*choices));
      }
    }
    const Value* type = find(rules, "type");
    if (type == nullptr) return std::nullopt;
    const auto fits = [&value](const Value& name) {
      return name.is_string() && has_type(value, text(name.get_string()));
    };
    const bool fine = type->is_array() ? std::ranges::any_of(type->get_array(), fits) : fits(*type);
    return fine ? Fault()
                : fmt::format("{}: {} is not of type {}", at, write(value).substr(0, 80), write(*type));
  }

  Fault alternatives(const Object& rules, const Value& value, const std::string& at, int depth) const {
    if (const Array* all = array_field(rules, "allOf")) {
      for (const Value& schema : *all) {
        if (Fault fault = check(schema, value, at, depth + 1)) return fault;
      }
    }
    for (const std::string_view key : {"anyOf", "oneOf"}) {
      const Array* any = array_field(rules, key);
      if (any == nullptr) continue;
      std::string reasons;
      std::size_t fitting = 0;
      for (const Value& schema : *any) {
        const Fault fault = check(schema, value, at, depth + 1);
        if (!fault) ++fitting;
        if (fault) reasons += fmt::format("\n  {}", *fault);
      }
      if (fitting == 0) return fmt::format("{}: no alternative fits:{}", at, reasons);
      if (key == "oneOf" && fitting > 1) return fmt::format("{}: {} alternatives of oneOf fit", at, fitting);
    }
    return std::nullopt;
  }

  Fault members(const Object& rules, const Value& value, const std::string& at, int depth) const {
    const Object* object = value.if_object();
    if (object == nullptr) return std::nullopt;
    if (const Array* required = array_field(rules, "required")) {
      for (const Value& name : *required) {
        if (!object->contains(name.as_string())) return fmt::format("{}: {} is missing", at, write(name));
      }
    }
    const Object* properties = object_field(rules, "properties");
    const Value* rest = find(rules, "additionalProperties");
    for (const auto& [key, member] : *object) {
      const Value* schema = properties == nullptr ? nullptr : find(*properties, key);
      if (schema == nullptr) schema = rest;
      if (schema == nullptr) continue;
      const std::string place = fmt::format("{}/{}", at, std::string_view(key));
      if (Fault fault = check(*schema, member, place, depth + 1)) return fault;
    }
    return std::nullopt;
  }

  Fault elements(const Object& rules, const Value& value, const std::string& at, int depth) const {
    const Array* array = value.if_array();
    const Value* schema = find(rules, "items");
    if (array == nullptr || schema == nullptr) return std::nullopt;
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (Fault fault = check(*schema, (*array)[i], fmt::format("{}/{}", at, i), depth + 1)) return fault;
    }
    return std::nullopt;
  }

  Fault range(const Object& rules, const Value& value, const std::string& at, int) const {
    if (!value.is_number()) return std::nullopt;
    const auto number = value.to_number<double>();
    const Value* least = find(rules, "minimum");
    const Value* most = find(rules, "maximum");
    const bool low = least != nullptr && least->is_number() && number < least->to_number<double>();
    const bool high = most != nullptr && most->is_number() && number > most->to_number<double>();
    return low || high ? fmt::format("{}: {} is out of range", at, write(value)) : Fault();
  }

  const Value& root_;
};

}  // namespace

std::optional<std::string> schema_fault(const Value& root, const Value& schema, const Value& value) {
  return Checker(root).check(schema, value, "", 0);
}

const Value* Schema::definition(std::string_view name) const {
  const Object* root = root_.if_object();
  if (root == nullptr) return nullptr;
  for (const std::string_view group : {"$defs", "definitions"}) {
    const Object* definitions = object_field(*root, group);
    if (definitions == nullptr) continue;
    if (const Value* found = find(*definitions, name)) return found;
  }
  return nullptr;
}

bool Schema::defines(std::string_view name) const {
  return definition(name) != nullptr;
}

std::optional<std::string> Schema::fault(const Value& value, std::string_view name) const {
  const Value* schema = definition(name);
  if (schema == nullptr) return fmt::format("the schema defines no {}", name);
  return schema_fault(root_, *schema, value);
}

}  // namespace prims::json

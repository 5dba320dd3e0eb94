#include "egress/page.h"

#include <charconv>

#include "http/message.h"
#include "json/json.h"

namespace prims::egress {
namespace {

/// The replacement for a reference as it stands in a page, with the reference's own fragment.
std::optional<std::string> replace_reference(std::string_view reference, const http::Url& base,
                                             const Replace& replace) {
  const auto url = http::resolve(base, reference);
  if (!url || !url->user_info.empty()) return std::nullopt;
  auto replaced = replace(*url);
  const auto hash = reference.find('#');
  if (replaced && hash != std::string_view::npos) replaced->append(reference.substr(hash));
  return replaced;
}

constexpr std::string_view kSpace = " \t\r\n\f";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The character that "&name;" stands for, when it is one that URLs contain.
std::optional<char> entity(std::string_view name) {
  if (name == "amp") return '&';
  if (name == "quot") return '"';
  if (name == "apos") return '\'';
  if (name == "lt") return '<';
  if (name == "gt") return '>';
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const bool hexadecimal = name.starts_with('x') || name.starts_with('X');
  if (hexadecimal) name.remove_prefix(1);
  int code = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || code <= 0 || code > 0x7e)
    return std::nullopt;
  return static_cast<char>(code);
}

std::string unescape(std::string_view text) {
  constexpr std::size_t kLongestName = 8;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto end = text[i] == '&' ? text.find(';', i) : std::string_view::npos;
    const bool near = end != std::string_view::npos && end - i <= kLongestName;
    const auto character = near ? entity(text.substr(i + 1, end - i - 1)) : std::nullopt;
    out.push_back(character.value_or(text[i]));
    if (character) i = end;
  }
  return out;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out.push_back(c);
  }
  return out;
}

struct Attribute {
  std::string_view name;
  std::string_view value;  // raw, without quotes
  std::string_view whole;  // as written
};

/// Cuts the next attribute off the inside of a tag.
std::optional<Attribute> take_attribute(std::string_view& inside) {
  const auto start = inside.find_first_not_of(" \t\r\n\f/");
  if (start == std::string_view::npos) return std::nullopt;
  inside.remove_prefix(start);
  Attribute attribute;
  const std::string_view from = inside;
  const auto name_end = std::min(inside.find_first_of(" \t\r\n\f=/", 1), inside.size());
  attribute.name = inside.substr(0, name_end);
  inside.remove_prefix(name_end);
  const auto equals = inside.find_first_not_of(kSpace);
  if (equals != std::string_view::npos && inside[equals] == '=') {
    inside.remove_prefix(equals + 1);
    inside.remove_prefix(std::min(inside.find_first_not_of(kSpace), inside.size()));
    const char quote = !inside.empty() && (inside[0] == '"' || inside[0] == '\'') ? inside[0] : '\0';
    if (quote != '\0') inside.remove_prefix(1);
    const auto end =
        std::min(quote != '\0' ? inside.find(quote) : inside.find_first_of(kSpace), inside.size());
    attribute.value = inside.substr(0, end);
    inside.remove_prefix(std::min(end + (quote != '\0' ? 1 : 0), inside.size()));
  }
  attribute.whole = from.substr(0, from.size() - inside.size());
  return attribute;
}

/// Where the tag that starts at `start` ends (past '>'), minding quoted attribute values.
std::size_t tag_end(std::string_view page, std::size_t start) {
  char quote = '\0';
  for (std::size_t i = start; i < page.size(); ++i) {
    if (quote != '\0') {
      if (page[i] == quote) quote = '\0';
    } else if (page[i] == '"' || page[i] == '\'') {
      quote = page[i];
    } else if (page[i] == '>') {
      return i + 1;
    }
  }
  return page.size();
}

class HtmlRewriter {
 public:
  HtmlRewriter(std::string_view page, const http::Url& base, const Replace& replace)
      : page_(page), base_(base), replace_(replace) {}

  std::string run() {
    out_.reserve(page_.size() + page_.size() / 4);
    std::size_t at = 0;
    while (at < page_.size()) {
      const std::size_t tag = std::min(page_.find('<', at), page_.size());
      out_.append(page_.substr(at, tag - at));
      at = tag == page_.size() ? tag : take_markup(tag);
    }
    return std::move(out_);
  }

 private:
  std::size_t take_markup(std::size_t start) {
    if (page_.substr(start).starts_with("<!--")) {
      const auto end = page_.find("-->", start + 4);
      return end == std::string_view::npos ? page_.size() : end + 3;
    }
    const std::size_t end = tag_end(page_, start);
    std::string_view inside = page_.substr(start + 1, end - start - 1);
    if (inside.ends_with('>')) inside.remove_suffix(1);
    const std::string_view name = inside.substr(0, inside.find_first_of(" \t\r\n\f/", 1));
    if (http::iequals(name, "a")) {
      write_anchor(inside.substr(name.size()));
    } else if (http::iequals(name, "base")) {
      read_base(inside.substr(name.size()));
    } else {
      out_.append(page_.substr(start, end - start));
    }
    return end;
  }

  void write_anchor(std::string_view inside) {
    out_ += "<a";
    while (const auto attribute = take_attribute(inside)) {
      if (!http::iequals(attribute->name, "href")) {
        out_.append(" ").append(attribute->whole);
        continue;
      }
      const std::string reference = unescape(trim(attribute->value));
      const auto replaced = replace_reference(reference, base_, replace_);
      if (replaced) out_.append(" href=\"").append(escape(*replaced)).append("\"");
    }
    out_ += ">";
  }

  /// Only the first one counts (HTML, 4.2.3).
  void read_base(std::string_view inside) {
    while (const auto attribute = take_attribute(inside)) {
      if (!http::iequals(attribute->name, "href") || base_seen_) continue;
      const auto url = http::resolve(base_, unescape(trim(attribute->value)));
      if (url) base_ = *url;
      base_seen_ = true;
    }
  }

  std::string_view page_;
  http::Url base_;
  bool base_seen_ = false;
  const Replace& replace_;
  std::string out_;
};

}  // namespace

Result<std::string> rewrite_json(std::string_view page, const http::Url& base, const Replace& replace) {
  PRIMS_ASSIGN_OR_RETURN(json::Value document, json::parse(page));
  if (!document.is_object()) return fail(Kind::invalid_input, "the index page is not a JSON object");
  json::Object& root = document.get_object();
  json::Value* const files = root.if_contains("files");
  if (files == nullptr) return json::write(document);
  if (!files->is_array()) return fail(Kind::invalid_input, "the index page's files are not a list");
  json::Array kept;
  kept.reserve(files->get_array().size());
  for (json::Value& file : files->get_array()) {
    if (!file.is_object()) continue;
    const auto reference = json::string_field(file.get_object(), "url");
    const auto replaced = reference ? replace_reference(*reference, base, replace) : std::nullopt;
    if (!replaced) continue;
    file.get_object()["url"] = *replaced;
    kept.push_back(std::move(file));
  }
  *files = std::move(kept);
  return json::write(document);
}

std::string rewrite_html(std::string_view page, const http::Url& base, const Replace& replace) {
  return HtmlRewriter(page, base, replace).run();
}

}  // namespace prims::egress

// Addresses, request targets and index pages: the parts of the broker that do no I/O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "egress/address_policy.h"
#include "egress/page.h"
#include "egress/target.h"
#include "json/json.h"

namespace prims::egress {
namespace {

http::Address address(const char* text, std::uint16_t port = 443) {
  return parse_address(text, port).value();
}

TEST(AddressPolicy, KnowsWhatIsPublic) {
  for (const char* text : {"1.1.1.1", "93.184.216.34", "172.32.0.1", "172.15.255.255", "100.128.0.1",
                           "198.20.0.1", "11.0.0.1", "2606:4700::1111", "2a04:4e42::223"}) {
    EXPECT_EQ(scope_of(address(text)), Scope::global) << text;
  }
  for (const char* text :
       {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255",
        "198.18.0.1", "192.0.2.7", "203.0.113.9", "240.0.0.1", "fd12::1", "2001:db8::1"}) {
    EXPECT_EQ(scope_of(address(text)), Scope::internal) << text;
  }
  for (const char* text : {"127.0.0.1",
                           "127.255.255.254",
                           "0.0.0.0",
                           "0.1.2.3",
                           "169.254.169.254",
                           "169.254.0.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "255.255.255.255",
                           "100.100.100.200",
                           "168.63.129.16",
                           "192.0.0.192",
                           "::",
                           "::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1",
                           "::ffff:1.1.1.1",
                           "::ffff:127.0.0.1",
                           "::1.1.1.1",
                           "64:ff9b::1.1.1.1",
                           "64:ff9b:1::1",
                           "2002:7f00:1::1",
                           "2001::1",
                           "fd00:ec2::254",
                           "100::1",
                           "4000::1"}) {
    EXPECT_EQ(scope_of(address(text)), Scope::closed) << text;
  }
}

TEST(AddressPolicy, AFileHostIsPublicOrOfTheIndexsOwnSite) {
  const auto public_index = address("1.1.1.1");
  const auto site_index = address("10.0.0.1");
  const auto loopback_index = address("127.0.0.1", 3141);
  EXPECT_TRUE(allow_file_host(address("2.2.2.2"), public_index).has_value());
  EXPECT_TRUE(allow_file_host(address("2.2.2.2"), std::nullopt).has_value());
  EXPECT_FALSE(allow_file_host(address("10.0.0.2"), public_index).has_value());
  EXPECT_FALSE(allow_file_host(address("10.0.0.2"), std::nullopt).has_value());
  EXPECT_TRUE(allow_file_host(address("192.168.3.4"), site_index).has_value());
  EXPECT_TRUE(allow_file_host(address("198.18.0.5"), site_index).has_value());
  EXPECT_FALSE(allow_file_host(address("127.0.0.1"), site_index).has_value());
  EXPECT_FALSE(allow_file_host(address("169.254.169.254"), site_index).has_value());
  EXPECT_FALSE(allow_file_host(address("::ffff:10.0.0.2"), site_index).has_value());
  EXPECT_FALSE(allow_file_host(address("10.0.0.2"), loopback_index).has_value());
  EXPECT_TRUE(allow_file_host(address("127.0.0.1", 3141), loopback_index).has_value());
  EXPECT_FALSE(allow_file_host(address("127.0.0.1", 6379), loopback_index).has_value());
  EXPECT_FALSE(allow_file_host(address("127.0.0.2", 3141), loopback_index).has_value());
}

TEST(Target, ReadsPagesAndFiles) {
  const auto page = read_target("GET", "/index/1/num-py/");
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(std::get<PageTarget>(*page).index, 1U);
  EXPECT_EQ(std::get<PageTarget>(*page).rest, "num-py/");
  EXPECT_EQ(std::get<PageTarget>(*read_target("GET", "/index/0/")).rest, "");
  const auto file = read_target("HEAD", "/file/https/files.example/8443/a/b%2B1-c.whl?sig=x%2Fy&e=1");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(std::get<FileTarget>(*file).host, "files.example");
  EXPECT_EQ(std::get<FileTarget>(*file).port, 8443);
  EXPECT_EQ(std::get<FileTarget>(*file).target, "/a/b%2B1-c.whl?sig=x%2Fy&e=1");
  EXPECT_TRUE(read_target("GET", file_path(*http::parse_url("https://[2001:db8::1]/x.whl"))).has_value());
}

TEST(Target, RefusesEverythingElse) {
  EXPECT_FALSE(read_target("POST", "/index/0/").has_value());
  EXPECT_FALSE(read_target("CONNECT", "evil.example:443").has_value());
  EXPECT_FALSE(read_target("OPTIONS", "*").has_value());
  for (const char* target : {"",
                             "/",
                             "*",
                             "evil.example:443",
                             "http://evil.example/",
                             "//evil.example/",
                             "/index",
                             "/index/",
                             "/index/0",
                             "/index/x/",
                             "/index/-1/",
                             "/index/00/",
                             "/index/99999999999999999999/",
                             "/index/0/../",
                             "/index/0/a/../b",
                             "/index/0/./",
                             "/index/0//a",
                             "/index/0/%2e%2e/",
                             "/index/0/%2E./",
                             "/index/0/a%2fb",
                             "/index/0/a%5cb",
                             "/index/0/a\\b",
                             "/index/0/a%00",
                             "/index/0/a%0d%0aX:y",
                             "/index/0/a%zz",
                             "/index/0/a%2",
                             "/index/0/a?b",
                             "/index/0/a#b",
                             "/index/0/a b",
                             "/index/0/\xc3\xa4",
                             "/index/0/%252e%252e/",
                             "/file/https/h/443/",
                             "/file/https/h/443",
                             "/file/ftp/h/443/a",
                             "/file/https//443/a",
                             "/file/https/h/0x1bb/a",
                             "/file/https/h/65536/a",
                             "/file/https/h/+443/a",
                             "/file/https/user@h/443/a",
                             "/file/https/user:p@h/443/a",
                             "/file/https/H/443/a",
                             "/file/https/h%2e/443/a",
                             "/file/https/h/443/../a",
                             "/file/https/h/443/a/%2e%2e/b",
                             "/file/https/h/443//a",
                             "/file/https/h/443/a%2Fb",
                             "/file/https/h/443/a?b\\c",
                             "/file/https/h/443/a?b c",
                             "/file/../index/0/",
                             "/INDEX/0/",
                             "/file/https/[::1]/443/a",
                             "/file/https/h\t/443/a"}) {
    const auto read = read_target("GET", target);
    ASSERT_FALSE(read.has_value()) << target;
    EXPECT_EQ(read.error().kind, Kind::denied) << target;
  }
}

const http::Url& base() {
  static const http::Url url = *http::parse_url("https://index.example/simple/pkg/");
  return url;
}

std::optional<std::string> offer(const http::Url& url) {
  if (url.host == "forbidden.example") return std::nullopt;
  return "http://127.0.0.1:9" + file_path(url);
}

TEST(JsonPage, ReplacesFileUrlsAndNothingElse) {
  const auto page = rewrite_json(R"({"meta":{"api-version":"1.1"},"name":"pkg","versions":["1"],"files":[
      {"filename":"a.whl","url":"https://files.example/a.whl","hashes":{"sha256":"0"},"core-metadata":{"sha256":"1"},"size":5},
      {"filename":"b.whl","url":"../../b.whl#sha256=2"},
      {"filename":"c.whl","url":"https://files.example/c.whl?sig=a&b=c","yanked":"bad"},
      {"filename":"d.whl","url":"https://forbidden.example/d.whl"},
      {"filename":"e.whl","url":"file:///etc/passwd"},
      {"filename":"f.whl","url":"https://user:pw@files.example/f.whl"},
      {"filename":"g.whl"}, {"filename":"h.whl","url":5}, 7]})",
                                 base(), offer);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(
      *page,
      R"({"meta":{"api-version":"1.1"},"name":"pkg","versions":["1"],"files":[)"
      R"({"filename":"a.whl","url":"http://127.0.0.1:9/file/https/files.example/443/a.whl","hashes":{"sha256":"0"},"core-metadata":{"sha256":"1"},"size":5},)"
      R"({"filename":"b.whl","url":"http://127.0.0.1:9/file/https/index.example/443/b.whl#sha256=2"},)"
      R"({"filename":"c.whl","url":"http://127.0.0.1:9/file/https/files.example/443/c.whl?sig=a&b=c","yanked":"bad"}]})");
  EXPECT_EQ(*rewrite_json(R"({"projects":[{"name":"a"}]})", base(), offer), R"({"projects":[{"name":"a"}]})");
  EXPECT_FALSE(rewrite_json("[]", base(), offer).has_value());
  EXPECT_FALSE(rewrite_json("{\"files\":{}}", base(), offer).has_value());
  EXPECT_FALSE(rewrite_json("{", base(), offer).has_value());
}

TEST(HtmlPage, ReplacesAnchors) {
  struct Case {
    const char* page;
    const char* expected;
  };
  const Case cases[] = {
      {R"(<a href="https://f.example/a.whl#sha256=0">a.whl</a>)",
       R"(<a href="http://127.0.0.1:9/file/https/f.example/443/a.whl#sha256=0">a.whl</a>)"},
      {R"(<A data-requires-python="&gt;=3.8" HREF='../../b.whl' data-core-metadata="sha256=1">b</A>)",
       R"(<a data-requires-python="&gt;=3.8" href="http://127.0.0.1:9/file/https/index.example/443/b.whl" data-core-metadata="sha256=1">b</A>)"},
      {R"(<a href=/c.whl>c</a>)", R"(<a href="http://127.0.0.1:9/file/https/index.example/443/c.whl">c</a>)"},
      {R"(<a href="/d?x=1&amp;y=2#egg=d">d</a>)",
       R"(<a href="http://127.0.0.1:9/file/https/index.example/443/d?x=1&amp;y=2#egg=d">d</a>)"},
      {R"(<a href="https&#58;//f.example/e.whl">e</a>)",
       R"(<a href="http://127.0.0.1:9/file/https/f.example/443/e.whl">e</a>)"},
      {R"(<a title="a > b" href=" /f.whl ">f</a>)",
       R"(<a title="a > b" href="http://127.0.0.1:9/file/https/index.example/443/f.whl">f</a>)"},
      {R"(<a href="https://forbidden.example/g.whl" rel="x">g</a>)", R"(<a rel="x">g</a>)"},
      {R"(<a href="javascript:alert">h</a>)", R"(<a>h</a>)"},
      {R"(<a href="https://u:p@f.example/i.whl">i</a>)", R"(<a>i</a>)"},
      {R"(<a name>j</a><br/>text < more)", R"(<a name>j</a><br/>text < more)"},
      {R"(<!-- <a href="/k"> -->k<!-- open <a href="/l">)", "k"},
      {R"(<base href="https://mirror.example/x/"><a href="m.whl">m</a><abbr href="/n">)",
       R"(<a href="http://127.0.0.1:9/file/https/mirror.example/443/x/m.whl">m</a><abbr href="/n">)"},
      {"<a href=\"/o", "<a href=\"http://127.0.0.1:9/file/https/index.example/443/o\">"},
      {"<", "<"},
      {"", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(rewrite_html(c.page, base(), offer), c.expected) << c.page;
}

}  // namespace
}  // namespace prims::egress

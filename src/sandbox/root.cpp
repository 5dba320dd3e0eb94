#include "sandbox/root.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace prims::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/:/usr/sbin/nologin\n"
    "user:x:1000:1000:user:/sandbox/home:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
constexpr std::string_view kGroup = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";
constexpr std::string_view kNameServices =
    "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\n"
    "protocols: files\nservices: files\nethers: files\nrpc: files\n";
constexpr std::string_view kProtocols =
    "ip 0 IP\nicmp 1 ICMP\nigmp 2 IGMP\ntcp 6 TCP\nudp 17 UDP\nipv6 41 IPv6\nipv6-icmp 58 IPv6-ICMP\n"
    "sctp 132 SCTP\nudplite 136 UDPLite\n";
constexpr std::string_view kServices =
    "echo 7/tcp\necho 7/udp\ndiscard 9/tcp\ndiscard 9/udp\ndaytime 13/tcp\nqotd 17/tcp\nftp 21/tcp\nssh "
    "22/tcp\n"
    "telnet 23/tcp\nsmtp 25/tcp mail\ntime 37/tcp timserver\ndomain 53/tcp\ndomain 53/udp\ntftp 69/udp\n"
    "http 80/tcp www\npop3 110/tcp pop-3\nntp 123/udp\nimap2 143/tcp imap\nsnmp 161/udp\nldap 389/tcp\n"
    "https 443/tcp\nhttps 443/udp\nsubmissions 465/tcp\nsyslog 514/udp\nsubmission 587/tcp\nldaps 636/tcp\n"
    "imaps 993/tcp\npop3s 995/tcp\nmysql 3306/tcp\npostgresql 5432/tcp\nhttp-alt 8080/tcp\n";
constexpr std::string_view kMimeTypes =
    "application/gzip gz\napplication/json json\napplication/pdf pdf\napplication/xml xml\napplication/zip "
    "zip\n"
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx\n"
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document docx\n"
    "audio/mpeg mp3\naudio/x-wav wav\nimage/gif gif\nimage/jpeg jpeg jpg\nimage/png png\nimage/svg+xml svg\n"
    "image/webp webp\ntext/css css\ntext/csv csv\ntext/html html htm\ntext/javascript js\ntext/markdown md\n"
    "text/plain txt text log\nvideo/mp4 mp4\n";

/// Read-only parts of the host's /etc that hold nothing private: certificates, the linker's cache, choices of
/// programs, fonts, and what Debian keeps there of Python.
constexpr std::string_view kSharedEtc[] = {
    "ld.so.cache",  "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted",
    "alternatives", "fonts"};

/// /bin and its like are symlinks on a merged system and directories elsewhere.
void add_system(Root& root) {
  root.binds.push_back({"/usr", "/usr", Access::read_only});
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    if (fs::is_symlink(path, error)) {
      root.symlinks.push_back({path, fs::read_symlink(path, error)});
    } else if (fs::is_directory(path, error)) {
      root.binds.push_back({path, path, Access::read_only});
    }
  }
}

void share_etc(Root& root, const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) root.binds.push_back({path, path, Access::read_only});
}

void add_etc(Root& root, const std::string& hostname) {
  const auto file = [&root](const char* name, std::string_view content) {
    root.files.push_back({fmt::format("/etc/{}", name), std::string(content)});
  };
  root.directories.push_back("/etc");
  file("passwd", kPasswd);
  file("group", kGroup);
  file("hosts",
       fmt::format("127.0.0.1 localhost {0}\n::1 localhost ip6-localhost ip6-loopback {0}\n", hostname));
  file("hostname", hostname + "\n");
  file("nsswitch.conf", kNameServices);
  file("protocols", kProtocols);
  file("services", kServices);
  file("mime.types", kMimeTypes);
  file("timezone", "Etc/UTC\n");
  file("resolv.conf", "");
  root.symlinks.push_back({"/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"});
  root.symlinks.push_back({"/etc/mtab", "/proc/self/mounts"});
  root.symlinks.push_back({"/etc/os-release", "/usr/lib/os-release"});
  for (const std::string_view name : kSharedEtc) share_etc(root, fs::path("/etc") / name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/etc", error)) {
    if (entry.path().filename().native().starts_with("python3")) share_etc(root, entry.path());
  }
}

void add_writable(Root& root, const RootSizes& sizes) {
  root.tmpfs.push_back({.path = "/tmp", .size = sizes.tmp, .mode = 01777});
  root.tmpfs.push_back({.path = "/dev/shm", .size = sizes.shared_memory, .mode = 01777});
  root.tmpfs.push_back({.path = kHome, .size = sizes.home, .mode = 0700});
  root.tmpfs.push_back({.path = "/sandbox/run", .size = sizes.run, .inodes = 1024, .mode = 0700});
  root.symlinks.push_back({"/var/tmp", "/tmp"});
  for (const char* path : {"/sandbox", "/sandbox/data"}) root.directories.emplace_back(path);
  root.symlinks.push_back({"/mnt/data", "/sandbox/data"});  // where many programs look for their files
  root.directories.push_back("/env");
  root.writable_parents.push_back("/sandbox");
}

}  // namespace

Root minimal_root(const std::string& hostname, const RootSizes& sizes) {
  Root root;
  add_system(root);
  add_etc(root, hostname);
  add_writable(root, sizes);
  return root;
}

}  // namespace prims::sandbox

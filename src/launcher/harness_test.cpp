// The launcher and init with sanitizers, outside their seccomp filter: the same sources as the product's
// launcher, driven over their sockets through one whole life of a sandbox. This test program is its own
// launcher and its own init.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "launcher/init.h"
#include "launcher/outside.h"
#include "launcher/wire.h"
#include "launcher/wire_writer.h"

namespace prims::launcher {
namespace {

constexpr std::uint32_t kUid = 54321;

std::string trees_of_host() {
  wire::Writer writer;
  const auto bind = [&writer](const char* path, std::uint32_t flags) { writer.text(path).value(flags); };
  bind("/usr", wire::kTreeReadOnly | wire::kTreeRecursive);
  bind("/dev/null", wire::kTreeDevice);
  bind("/no/such/directory", wire::kTreeReadOnly | wire::kTreeOptional);
  return writer.take();
}

std::string steps_of_root() {
  wire::Writer writer;
  const auto directory = [&writer](const char* path) {
    writer.value(wire::Operation::directory).text(path).value<std::uint32_t>(0755);
  };
  const auto link = [&writer](const char* path, const char* target) {
    writer.value(wire::Operation::symlink).text(path).text(target);
  };
  const auto file = [&writer](const char* path, const char* content) {
    writer.value(wire::Operation::file).text(path).value<std::uint32_t>(0444).bytes(content);
  };
  const auto bind = [&writer](const char* path, std::uint32_t tree) {
    writer.value(wire::Operation::bind).text(path).value(tree);
  };
  for (const char* path : {"/usr", "/proc", "/dev", "/dev/pts", "/sandbox", "/sandbox/data", "/tmp", "/gone"})
    directory(path);
  for (const char* path : {"/bin", "/lib", "/lib64"}) link(path, (std::string("usr") + path).c_str());
  file("/dev/null", "");
  file("/greeting", "hello\n");
  writer.value(wire::Operation::tmpfs).text("/tmp").value<std::uint32_t>(0700);
  writer.value<std::uint64_t>(1 << 20).value<std::uint64_t>(16);
  bind("/usr", 0);
  bind("/dev/null", 1);
  bind("/gone", 2);
  return writer.take();
}

enum class First { init, stage };

std::string make_spec(First first = First::init) {
  const bool stage = first == First::stage;
  wire::Settings settings;
  settings.flags = wire::kAwaitProceed | (stage ? wire::kStage : wire::kLoopbackBroker);
  settings.slots = stage ? 2 : 0;
  settings.broker_port = 3128;
  const bool root = ::geteuid() == 0;
  settings.outside_uid = root ? kUid : ::geteuid();
  settings.outside_gid = root ? kUid : ::getegid();
  settings.owner_id = root ? kUid + 1 : ::geteuid();
  if (!root) settings.flags |= wire::kOrdinaryUser;
  wire::Writer masks;
  masks.text("/proc/cmdline").value<std::uint32_t>(0).text("/proc/bus").value<std::uint32_t>(1);
  wire::Writer limits;
  limits.value<std::uint32_t>(4).value<std::uint64_t>(1).value<std::uint64_t>(1);  // RLIMIT_CORE
  wire::Writer rules;
  rules.text("/").value(wire::Rights::read).text("/dev").value(wire::Rights::device);
  rules.text("/tmp").value(wire::Rights::write).text("/sandbox").value(wire::Rights::write);
  const std::string allow_all("\x06\0\0\0\0\0\xff\x7f", 8);
  wire::Writer body;
  body.value(settings).text("harness").bytes(trees_of_host()).bytes(steps_of_root()).bytes(masks.take());
  wire::Writer slots;
  for (std::uint32_t slot = 0; root && slot < settings.slots; ++slot) {
    slots.value<std::uint32_t>(kUid + 2 + slot).value<std::uint32_t>(kUid + 2 + slot);
  }
  body.bytes(limits.take()).bytes(rules.take()).bytes(slots.take()).bytes(allow_all);
  for (int i = 0; i < 2; ++i) body.bytes(stage ? allow_all : "");  // of the template program and its forks
  wire::Header header;
  header.size = static_cast<std::uint32_t>(sizeof header + body.size());
  wire::Writer whole;
  whole.value(header);
  return whole.take() + body.take();
}

struct Received {
  wire::Notice notice;
  UniqueFd descriptor;
};

std::optional<Received> receive(const UniqueFd& socket) {
  Received received;
  iovec part{&received.notice, sizeof received.notice};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  if (::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC) != sizeof received.notice) return std::nullopt;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    received.descriptor = UniqueFd(fd);
  }
  return received;
}

class Harness : public ::testing::Test {
 protected:
  void launch(const std::string& spec) {
    std::array<int, 2> control{};
    std::array<int, 2> init{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control.data()), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, init.data()), 0);
    const int spec_file = ::memfd_create("spec", MFD_CLOEXEC);
    ASSERT_EQ(::write(spec_file, spec.data(), spec.size()), static_cast<ssize_t>(spec.size()));
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::array<int, 3> parked = {::fcntl(control[1], F_DUPFD, 64), ::fcntl(init[1], F_DUPFD, 64),
                                         ::fcntl(spec_file, F_DUPFD, 64)};
      ::dup2(parked[0], wire::kControlFd);
      ::dup2(parked[1], wire::kInitFd);
      ::dup2(parked[2], wire::kSpecFd);
      ::_exit(run_launcher());
    }
    ::close(control[1]);
    ::close(init[1]);
    ::close(spec_file);
    control_ = UniqueFd(control[0]);
    init_ = UniqueFd(init[0]);
  }

  void expect(const UniqueFd& socket, wire::NoticeKind kind, Received* into = nullptr) {
    auto received = receive(socket);
    ASSERT_TRUE(received) << "closed instead of notice " << static_cast<unsigned>(kind);
    ASSERT_EQ(received->notice.kind, kind) << received->notice.step << ": " << received->notice.error;
    if (into != nullptr) *into = std::move(*received);
  }

  static void send(const UniqueFd& socket, std::string message, int descriptor = -1) {
    iovec part{message.data(), message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    }
    ASSERT_EQ(::sendmsg(socket.get(), &header, 0), static_cast<ssize_t>(message.size()));
  }

  /// `script` for the shell, with /dev/null as its descriptors.
  static void start_shell(const UniqueFd& socket, const char* script) {
    wire::Writer start;
    start.value(wire::Request{wire::RequestKind::start}).value(wire::StartHeader{7, 3, 1}).text("/");
    send(socket, start.text("/bin/sh").text("-c").text(script).text("PATH=/usr/bin").take());
  }

  int wait_for_launcher() const {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    return status;
  }

  pid_t pid_ = -1;
  UniqueFd control_;
  UniqueFd init_;
};

TEST_F(Harness, LivesOneWholeLife) {
  std::string pattern = "/tmp/prims-harness-XXXXXX";
  const std::string workspace = ::mkdtemp(pattern.data());
  std::filesystem::permissions(workspace, std::filesystem::perms::all);
  ASSERT_NO_FATAL_FAILURE(launch(make_spec()));
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::created));
  send(control_, wire::Writer().value(wire::Request{wire::RequestKind::proceed}).take());
  Received broker;
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::broker, &broker));
  EXPECT_TRUE(broker.descriptor.valid());
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::ready));

  wire::Writer attach;
  attach.value(wire::Request{wire::RequestKind::attach}).text(workspace).text("/sandbox/data");
  send(control_, attach.value(std::uint32_t{wire::kTreeReadOnly}).take());
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::attached));

  std::ofstream(workspace + "/given") << "given";
  wire::Writer start;
  start.value(wire::Request{wire::RequestKind::start})
      .value(wire::StartHeader{7, 3, 1})
      .text("/sandbox/data");
  start.text("/bin/sh")
      .text("-c")
      .text("grep -q given given && echo x > /tmp/y && exit 42")
      .text("PATH=/usr/bin");
  send(init_, start.take());
  Received exited;
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::exited, &exited));
  EXPECT_EQ(WEXITSTATUS(exited.notice.value), 42);
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::ended));
  EXPECT_EQ(wait_for_launcher(), 0);
  std::filesystem::remove_all(workspace);
}

TEST_F(Harness, AStageMakesSandboxes) {
  ASSERT_NO_FATAL_FAILURE(launch(make_spec(First::stage)));
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::created));
  send(control_, wire::Writer().value(wire::Request{wire::RequestKind::proceed}).take());
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::ready));

  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd member(ends[0]);
  UniqueFd theirs(ends[1]);
  send(init_, wire::Writer().value(wire::Request{wire::RequestKind::make, 1}).take(), theirs.get());
  theirs.reset();
  Received created;
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::created, &created));
  EXPECT_EQ(created.notice.value, 1);
  EXPECT_TRUE(created.descriptor.valid());
  ASSERT_NO_FATAL_FAILURE(expect(member, wire::NoticeKind::ready));

  start_shell(member, "echo x > /tmp/y && exit 42");
  Received exited;
  ASSERT_NO_FATAL_FAILURE(expect(member, wire::NoticeKind::exited, &exited));
  EXPECT_EQ(WEXITSTATUS(exited.notice.value), 42);
  Received ended;
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::ended, &ended));
  EXPECT_EQ(ended.notice.value, 1);

  start_shell(init_, "test ! -e /tmp/y && exit 7");
  ASSERT_NO_FATAL_FAILURE(expect(init_, wire::NoticeKind::exited, &exited));
  EXPECT_EQ(WEXITSTATUS(exited.notice.value), 7);
  init_.reset();
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::ended));
  EXPECT_EQ(wait_for_launcher(), 0);
}

TEST_F(Harness, EndsWhenTheServerGoes) {
  ASSERT_NO_FATAL_FAILURE(launch(make_spec()));
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::created));
  control_.reset();
  EXPECT_EQ(WEXITSTATUS(wait_for_launcher()), 1);
  EXPECT_FALSE(receive(init_));
}

TEST_F(Harness, RefusesANewerSpecAndSaysSo) {
  std::string spec = make_spec();
  wire::Header header;
  std::memcpy(&header, spec.data(), sizeof header);
  header.version = wire::kVersion + 1;
  std::memcpy(spec.data(), &header, sizeof header);
  ASSERT_NO_FATAL_FAILURE(launch(spec));
  Received failed;
  ASSERT_NO_FATAL_FAILURE(expect(control_, wire::NoticeKind::failed, &failed));
  EXPECT_STREQ(failed.notice.step, "spec: version is newer than mine");
  EXPECT_EQ(WEXITSTATUS(wait_for_launcher()), 1);
}

/// No prefix and no single wrong byte of a Spec may be read beyond its end; sanitizers watch.
TEST(Wire, SurvivesBrokenSpecs) {
  const std::string spec = make_spec();
  wire::Spec decoded;
  ASSERT_EQ(wire::decode(spec, decoded), nullptr);
  for (std::size_t size = 0; size < spec.size(); ++size) {
    const std::string cut(spec, 0, size);
    EXPECT_NE(wire::decode(cut, decoded), nullptr);
  }
  for (std::size_t at = 0; at < spec.size(); ++at) {
    for (const char wrong : {'\0', '\x7f', '\xff'}) {
      std::string bent = spec;
      bent[at] = wrong;
      if (wire::decode(bent, decoded) != nullptr) continue;
      std::size_t steps = 0;
      decoded.steps.each([&steps](const wire::Step& step) {
        steps += step.path.size() + step.text.size();
        return false;
      });
      EXPECT_GT(steps, 0U);
    }
  }
}

TEST(Wire, NeverMapsToHostRoot) {
  std::string spec = make_spec();
  wire::Settings settings;
  std::memcpy(&settings, spec.data() + sizeof(wire::Header), sizeof settings);
  settings.outside_uid = 0;
  std::memcpy(spec.data() + sizeof(wire::Header), &settings, sizeof settings);
  wire::Spec decoded;
  EXPECT_STREQ(wire::decode(spec, decoded), "spec: maps to host uid or gid 0");
}

}  // namespace
}  // namespace prims::launcher

/// Init cannot be traced, which is how leaks are looked for; nothing in it is ever freed either.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

int main(int argc, char** argv) {
  if (argc == 1 && std::strcmp(argv[0], prims::launcher::wire::kInitName) == 0)
    return prims::launcher::run_init();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

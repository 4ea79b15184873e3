// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hone::agent {
namespace {

// Rights of later versions, spelled out because the header of the build system may be older than the running kernel.
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14, kIoctl = 1 << 15;
constexpr uint64_t kTcp = 0b11;     // bind, connect
constexpr uint64_t kScoped = 0b11;  // abstract sockets, signals
constexpr int kTruncateVersion = 3, kTcpVersion = 4, kIoctlVersion = 5, kScopedVersion = 6;

struct Ruleset {  // landlock_ruleset_attr of version 6; older kernels take its beginning
  uint64_t files = 0, network = 0, scoped = 0;
};

constexpr uint64_t kReading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriting = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
                              LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | kRefer | kTruncate;
constexpr uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctl;
// fopen for writing asks to truncate a node, so that is allowed. Drivers also list folders of nodes.
constexpr uint64_t kOfNodes =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR | kTruncate | kIoctl;

long Version() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION); }

uint64_t FilesOf(long version) {
  uint64_t files = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (version >= 2) files |= kRefer;
  if (version >= kTruncateVersion) files |= kTruncate;
  if (version >= kIoctlVersion) files |= kIoctl;
  return files;
}

size_t SizeOf(long version) {
  return version >= kScopedVersion ? sizeof(Ruleset) : version >= kTcpVersion ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

// Adds a rule for `path`; an absent path needs none.
void AllowBeneath(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = fd;
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    rule.allowed_access = access & kOfFiles;  // a file takes no directory rights
    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
  close(fd);
}

}  // namespace

absl::StatusOr<int> RestrictWithLandlock(const SandboxPolicy& policy) {
  const auto failed = [] { return absl::UnavailableError(fmt::format("Landlock: {}", strerror(errno))); };
  const long version = Version();
  if (version < 1) return failed();
  Ruleset attributes;
  attributes.files = FilesOf(version);
  attributes.network = version >= kTcpVersion ? kTcp : 0;
  attributes.scoped = version >= kScopedVersion ? kScoped : 0;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, SizeOf(version), 0));
  if (ruleset < 0) return failed();
  for (const std::string& path : policy.AllReadable()) AllowBeneath(ruleset, path, kReading & attributes.files);
  for (const std::string& path : policy.writable) AllowBeneath(ruleset, path, (kReading | kWriting) & attributes.files);
  for (const std::string& path : policy.nodes) AllowBeneath(ruleset, path, kOfNodes & attributes.files);
  const bool restricted = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  if (!restricted) return failed();
  return static_cast<int>(version);
}

void BlockOutgoingSignals() {
  if (Version() < kScopedVersion) return;
  Ruleset attributes;
  attributes.scoped = kScoped;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0));
  if (ruleset < 0) return;
  syscall(SYS_landlock_restrict_self, ruleset, 0);
  close(ruleset);
}

}  // namespace hone::agent

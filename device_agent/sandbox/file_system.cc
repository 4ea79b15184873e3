// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBase = "/tmp";  // where the new root is made; only this process sees it
constexpr const char* kOld = "/old-root";
constexpr unsigned long kProcFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

absl::Status Failed(const std::string& what) {
  return absl::UnavailableError(fmt::format("{}: {}", what, strerror(errno)));
}

struct Mount {
  std::string source, place;
  bool writable;
  std::string link = {};  // another name of the place; may be empty
};

bool IsProc(const std::string& path) { return path.starts_with("/proc"); }

// The existing paths of the policy, with links resolved, because links would lead elsewhere in the new root. A folder
// that is a link in the system, such as /lib, becomes a link in the new root too, so that paths relative to it work.
std::vector<Mount> MountsOf(const SandboxPolicy& policy) {
  std::vector<Mount> mounts;
  const auto add = [&](const std::vector<std::string>& paths, bool writable) {
    for (const std::string& path : paths) {
      std::error_code error;
      const fs::path source = fs::canonical(path, error);
      if (error || IsProc(path)) continue;
      const bool linked = fs::is_symlink(path, error) && fs::is_directory(source, error);
      mounts.push_back({source, linked ? source.string() : path, writable});
      if (linked) mounts.back().link = path;
    }
  };
  add(policy.AllReadable(), false);
  add(policy.writable, true);
  add(policy.nodes, true);
  return mounts;
}

// The flags that the mount of `path` has; a user namespace must keep them.
unsigned long FlagsOf(const std::string& path) {
  struct statvfs info{};
  if (statvfs(path.c_str(), &info) != 0) return 0;
  unsigned long flags = 0;
  for (const auto& [shown, flag] : {std::pair<unsigned long, unsigned long>{ST_NODEV, MS_NODEV},
                                    {ST_NOEXEC, MS_NOEXEC},
                                    {ST_NOATIME, MS_NOATIME},
                                    {ST_NODIRATIME, MS_NODIRATIME},
                                    {ST_RELATIME, MS_RELATIME}}) {
    if ((info.f_flag & shown) != 0) flags |= flag;
  }
  return flags;
}

absl::Status Put(const Mount& mount) {
  const std::string source = kOld + mount.source;
  std::error_code error;
  if (!mount.link.empty()) {
    fs::create_directories(fs::path(mount.link).parent_path(), error);
    fs::create_directory_symlink(mount.place, mount.link, error);
  }
  if (fs::is_directory(source, error)) {
    fs::create_directories(mount.place, error);
  } else {
    fs::create_directories(fs::path(mount.place).parent_path(), error);
    close(open(mount.place.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  }
  if (::mount(source.c_str(), mount.place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return Failed("cannot bind " + mount.place);
  }
  if (mount.writable) return absl::OkStatus();
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | FlagsOf(mount.place);
  if (::mount(nullptr, mount.place.c_str(), nullptr, flags, nullptr) != 0) {
    return Failed(fmt::format("cannot make {} read-only", mount.place));
  }
  return absl::OkStatus();
}

// Mounts /proc in the new root, without the files about the system unless a driver reads them. If the system hides
// parts of its /proc, as containers do, it forbids a new mount, and the old /proc is bound instead.
absl::Status PutProc(const SandboxPolicy& policy) {
  bool whole = false;
  for (const std::string& path : policy.readable) whole |= IsProc(path);
  mkdir("/proc", 0755);
  if (!whole && mount("proc", "/proc", "proc", kProcFlags, "subset=pid") == 0) return absl::OkStatus();
  if (mount("proc", "/proc", "proc", kProcFlags, nullptr) == 0) return absl::OkStatus();
  const std::string old = std::string(kOld) + "/proc";
  if (mount(old.c_str(), "/proc", nullptr, MS_BIND | MS_REC, nullptr) == 0) return absl::OkStatus();
  return Failed("cannot mount /proc");
}

}  // namespace

absl::Status MountOwnProc() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Failed("cannot keep mounts to itself");
  }
  if (mount("proc", "/proc", "proc", kProcFlags, nullptr) != 0) return Failed("cannot mount /proc");
  return absl::OkStatus();
}

absl::Status MountPolicyRoot(const SandboxPolicy& policy) {
  const std::vector<Mount> mounts = MountsOf(policy);
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("cannot keep mounts to itself");
  if (mount("hone", kBase, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") != 0)
    return Failed("cannot mount a tmpfs");
  const std::string old = std::string(kBase) + kOld;
  umask(022);  // the user that this process becomes later must be able to enter these folders
  if (chdir(kBase) != 0 || mkdir(old.c_str(), 0700) != 0) return Failed("cannot make a folder in a tmpfs");
  if (syscall(SYS_pivot_root, kBase, old.c_str()) != 0) return Failed("cannot change the root");
  if (chdir("/") != 0) return Failed("cannot enter the new root");
  for (const Mount& mount : mounts) HONE_RETURN_IF_ERROR(Put(mount));
  HONE_RETURN_IF_ERROR(PutProc(policy));
  if (umount2(kOld, MNT_DETACH) != 0) return Failed("cannot leave the old root");
  rmdir(kOld);
  if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) {
    return Failed("cannot make the root read-only");
  }
  return absl::OkStatus();
}

}  // namespace hone::agent

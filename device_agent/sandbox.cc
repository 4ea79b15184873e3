#include "device_agent/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "base/resource_limit.h"

namespace hone::agent {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uint64_t kMostFileBytes = 256 << 20;  // of what a driver keeps

bool LeaveNetwork() {
  if (unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0) return true;
  return unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0;
}

// Only for a launcher started by root; a user's agent keeps the user's rights, which Landlock narrows.
bool LeaveRoot(const SandboxPolicy& policy) {
  if (geteuid() != 0) return true;
  for (const std::string& folder : policy.writable) {
    if (chown(folder.c_str(), kNobody, kNobody) != 0) return false;
  }
  if (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
      setresuid(kNobody, kNobody, kNobody) != 0) {
    return false;
  }
  // Changing the user made the process undumpable, and with it /proc/self/fd unreadable, where artifacts are opened.
  return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

constexpr uint64_t kReading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriting = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
                              LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE;

bool AllowBeneath(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = fd;
  bool added = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  if (!added) {
    rule.allowed_access = access & kOfFiles;  // a file takes no directory rights
    added = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  }
  close(fd);
  return added;
}

bool LeaveFiles(const SandboxPolicy& policy) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  constexpr uint64_t kVersion1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  uint64_t writing = kWriting;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kVersion1;
#ifdef LANDLOCK_ACCESS_FS_REFER
  // Without it no file moves from one folder to another, as caches do when a file is complete.
  if (version >= 2) {
    attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
    writing |= LANDLOCK_ACCESS_FS_REFER;
  }
#endif
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0));
  if (ruleset < 0) return false;
  // What the loader needs for an artifact that is linked with the C or math library.
  for (const char* path : {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"}) {
    AllowBeneath(ruleset, path, kReading);
  }
  for (const std::string& path : policy.readable) AllowBeneath(ruleset, path, kReading);
  for (const std::string& path : policy.writable) AllowBeneath(ruleset, path, kReading | writing);
  for (const std::string& path : policy.nodes) {
    AllowBeneath(ruleset, path, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
  }
  const bool confined = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  return confined;
}

// Names, because not every architecture has every call; libseccomp skips those it does not know here.
constexpr const char* kForbidden[] = {"accept",
                                      "accept4",
                                      "acct",
                                      "add_key",
                                      "adjtimex",
                                      "bind",
                                      "bpf",
                                      "chroot",
                                      "clock_adjtime",
                                      "clock_settime",
                                      "connect",
                                      "delete_module",
                                      "fanotify_init",
                                      "finit_module",
                                      "init_module",
                                      "io_setup",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "io_uring_setup",
                                      "ioperm",
                                      "iopl",
                                      "kcmp",
                                      "kexec_file_load",
                                      "kexec_load",
                                      "keyctl",
                                      "listen",
                                      "lookup_dcookie",
                                      "memfd_secret",
                                      "mount",
                                      "mount_setattr",
                                      "move_mount",
                                      "move_pages",
                                      "mq_open",
                                      "msgget",
                                      "name_to_handle_at",
                                      "open_by_handle_at",
                                      "open_tree",
                                      "perf_event_open",
                                      "personality",
                                      "pidfd_getfd",
                                      "pidfd_send_signal",
                                      "pivot_root",
                                      "process_madvise",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "ptrace",
                                      "quotactl",
                                      "reboot",
                                      "request_key",
                                      "semget",
                                      "setdomainname",
                                      "sethostname",
                                      "setns",
                                      "settimeofday",
                                      "shmget",
                                      "socket",
                                      "swapoff",
                                      "swapon",
                                      "syslog",
                                      "umount2",
                                      "unshare",
                                      "userfaultfd",
                                      "uselib",
                                      "vhangup"};

bool LeaveSystemCalls(const SandboxPolicy& policy) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return false;
  const auto forbid = [&](const char* name) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number != __NR_SCMP_ERROR) (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
  };
  for (const char* name : kForbidden) forbid(name);
  if (!policy.programs) {
    for (const char* name : {"execve", "execveat"}) forbid(name);
  }
  const bool loaded = seccomp_load(filter) == 0;
  seccomp_release(filter);
  return loaded;
}

// Threads are needed, processes only where other programs are; signals only to oneself (abort).
bool LeaveProcesses(const SandboxPolicy& policy) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return false;
  const auto forbid = [&](int number, int error) { (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), number, 0); };
  if (!policy.programs) {
#ifdef CLONE_THREAD
    (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                           SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
#endif
    forbid(SCMP_SYS(clone3), ENOSYS);  // its flags are in memory, which a filter cannot see; libc falls back to clone
    for (const int number : {SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(prlimit64)}) forbid(number, EPERM);
  }
  for (const int number : {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(setpgid), SCMP_SYS(rt_sigqueueinfo),
                           SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(setrlimit), SCMP_SYS(setsid), SCMP_SYS(setpriority)}) {
    forbid(number, EPERM);
  }
  // A program that the driver runs may end itself too, under another number: it has nobody else's.
  if (!policy.programs) {
    (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
                           SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(getpid())));
  }
  const bool loaded = seccomp_load(filter) == 0;
  seccomp_release(filter);
  return loaded;
}

}  // namespace

std::vector<std::string> ConfineLauncher(const SandboxPolicy& policy) {
  std::vector<std::string> layers;
  const auto add = [&](bool holds, std::string_view name) {
    if (holds) layers.emplace_back(name);
  };
  add(LeaveNetwork(), "no-network");
  add(LeaveRoot(policy), "no-root");
  add(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no-new-privileges");
  add(LeaveFiles(policy), "landlock");
  add(LeaveSystemCalls(policy), "seccomp");
  return layers;
}

void ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits) {
  const pid_t parent = getppid();
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);  // it died before the line above
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  LimitResource(RLIMIT_CORE, 0);
  LimitResource(RLIMIT_FSIZE, policy.writable.empty() ? 0 : kMostFileBytes);
  LimitResource(RLIMIT_NOFILE, static_cast<rlim_t>(policy.open_files));
  LimitResource(RLIMIT_MEMLOCK, 0);
  if (limits.memory_bytes > 0 && !policy.own_address_space) LimitMemory(limits.memory_bytes);
  if (limits.cpu_seconds > 0) LimitResource(RLIMIT_CPU, limits.cpu_seconds);
  LeaveProcesses(policy);
}

}  // namespace hone::agent

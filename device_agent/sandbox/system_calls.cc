// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace hone::agent {
namespace {

using Value = SystemCall::Condition::Value;
constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kFile = 0xffff'ffff;  // file descriptors and process ids are of 32 bits
constexpr SystemCall::Condition kOnChannel = {0, kFile, 0, Value::kChannel};
constexpr SystemCall::Condition kNoCode = {2, PROT_EXEC, 0};

// Allowed while kernels run.
constexpr SystemCall kRunning[] = {
    {"brk", "memory of the measuring code and of the C library"},
    {"mmap", "buffers, and memory of the C library; no new code", kNoCode},
    {"mprotect", "guards around buffers", kNoCode},
    {"mmap2", "mmap of 32-bit Arm", kNoCode},
    {"munmap", "frees the buffers of a finished kernel"},
    {"mremap", "grows a vector"},
    {"madvise", "huge pages, and memory that a thread gives back"},
    {"futex", "threads that wait for each other"},
    {"futex_time64", "the same with 64-bit times, on 32-bit Arm"},
    {"sched_yield", "waits for a thread that has no CPU"},
    {"set_robust_list", "start of a thread, also while kernels run"},
    {"rseq", "start of a thread, also while kernels run"},
    {"sched_setaffinity", "a new thread pins itself to its CPU; no other thread", {0, kFile, 0}},
    {"sched_getaffinity", "the C library asks it at a thread's first allocation"},
    {"getcpu", "the thread pool, at each loop, if the system does not answer in user space"},
    {"clock_gettime", "timing, if the system does not answer in user space", {0, kFile, 1}},
    {"clock_gettime64", "the same with 64-bit times, on 32-bit Arm", {0, kFile, 1}},
    {"gettimeofday", "kernels that read the clock"},
    {"getrandom", "the C library's heap"},
    {"getrusage", "the largest memory of this process while it runs a package", {0, kFile, 0}},
    {"getpid", "abort()"},
    {"gettid", "abort()"},
    {"tgkill", "abort(): signals to its own threads", {0, kFile, 0, Value::kOwnProcess}},
    {"rt_sigprocmask", "abort(), and threads that start"},
    {"rt_sigreturn", "end of a signal handler"},
    {"sigreturn", "the same, of handlers that take the signal's number alone, on 32-bit Arm"},
    {"restart_syscall", "resumes a call that a signal interrupted"},
    {"sendto", "packets to the launcher", kOnChannel, {4, kAll, 0}},
    {"recvfrom", "the launcher's answers", kOnChannel},
    {"send", "sendto of 32-bit Arm", kOnChannel},
    {"recv", "recvfrom of 32-bit Arm", kOnChannel},
    {"sendmsg", "sends the listener to the launcher", kOnChannel},
    {"recvmsg", "receives tasks from the launcher", kOnChannel},
    {"exit", "end of a thread"},
    {"exit_group", "end of the process"},
    {"clone3", "a filter cannot see its flags, which are in memory; the C library then uses clone", {}, {}, ENOSYS},
};

// Allowed until the first kernel is called: for loading the artifact, starting threads, installing the fault handlers.
constexpr SystemCall kSettingUp[] = {
    {"openat", "reads shared objects and the topology of the CPUs", {2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY}},
    {"read", "shared objects"},
    {"pread64", "shared objects"},
    {"lseek", "shared objects"},
    {"_llseek", "shared objects, on 32-bit Arm"},
    {"fstat", "shared objects"},
    {"fstat64", "shared objects, on 32-bit Arm"},
    {"stat64", "shared objects, on 32-bit Arm"},
    {"newfstatat", "shared objects"},
    {"fstatat64", "shared objects"},
    {"statx", "shared objects"},
    {"access", "the loader looks where a shared object is"},
    {"faccessat", "the loader looks where a shared object is"},
    {"readlink", "the loader asks where a shared object came from"},
    {"readlinkat", "the loader asks where a shared object came from"},
    {"close", "closes opened files"},
    {"mmap", "the code of a shared object"},
    {"mmap2", "the code of a shared object, on 32-bit Arm"},
    {"mprotect", "the code of a shared object"},
    {"clone", "starts a thread", {0, CLONE_THREAD, CLONE_THREAD}},
    {"set_tid_address", "start of a thread"},
    {"prctl", "a thread's name", {0, kFile, PR_SET_NAME}},
    {"prctl", "installs the narrower filter at the end of the setup", {0, kFile, PR_SET_NO_NEW_PRIVS}},
    {"rt_sigaction", "the crash handler"},
    {"sigaltstack", "the crash handler"},
    {"sysinfo", "the C library asks for the size of memory"},
    {"uname", "the C library asks for the version of the system"},
    {"prlimit64", "the C library asks how large stacks are", {2, kAll, 0}},
    {"getrlimit", "the C library asks how large stacks are"},
    {"ugetrlimit", "the C library asks how large stacks are, on 32-bit Arm"},
    {"seccomp", "installs the narrower filter at the end of the setup"},
};

// Allowed as long as kSettingUp, in children that load packages. Files on disks cannot be opened for writing, and those
// of the task are read-only, except for the memory of results.
constexpr SystemCall kPlacingCode[] = {
    {"memfd_create", "a file of memory for a package's code"},
    {"write", "writes the code into that file"},
    {"fcntl", "seals that file", {1, kFile, F_ADD_SEALS}},
    {"fcntl64", "seals that file, on 32-bit Arm", {1, kFile, F_ADD_SEALS}},
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // a sanitizer reads maps and names of threads at any time
#else
constexpr bool kSanitized = false;
#endif

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

uint64_t ValueOf(const SystemCall::Condition& condition, int channel) {
  switch (condition.what) {
    case Value::kOwnProcess:
      return static_cast<uint64_t>(getpid());
    case Value::kChannel:
      return static_cast<uint32_t>(channel);
    case Value::kGiven:
      break;
  }
  return condition.value;
}

bool AddCalls(const Filter& filter, std::span<const SystemCall> calls, int channel) {
  for (const SystemCall& call : calls) {
    const int number = seccomp_syscall_resolve_name(call.name);
    if (number < 0) continue;  // not every architecture has every call
    scmp_arg_cmp conditions[2];
    unsigned count = 0;
    for (const SystemCall::Condition& condition : {call.first, call.second}) {
      if (condition.mask == 0) continue;
      conditions[count++] = {condition.argument, SCMP_CMP_MASKED_EQ, condition.mask, ValueOf(condition, channel)};
    }
    const uint32_t action = call.refused_with != 0 ? SCMP_ACT_ERRNO(call.refused_with) : SCMP_ACT_ALLOW;
    const int error = seccomp_rule_add_array(filter.get(), action, number, count, conditions);
    if (error != 0 && error != -EEXIST) return false;  // a rule may say again what another has said
  }
  return true;
}

// Loads the filter. Returns 0 or the errno.
int Load(uint32_t otherwise, std::span<const std::span<const SystemCall>> setup, std::span<const SystemCall> driver,
         int channel, int* listener) {
  const Filter filter(seccomp_init(otherwise));
  if (filter == nullptr) return ENOMEM;
  seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (otherwise == SCMP_ACT_TRAP) seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (!AddCalls(filter, driver, channel) || !AddCalls(filter, kRunning, channel)) return EINVAL;
  for (const std::span<const SystemCall> calls : setup) {
    if (!AddCalls(filter, calls, channel)) return EINVAL;
  }
  if (const int error = seccomp_load(filter.get()); error != 0) return -error;
  *listener = otherwise == SCMP_ACT_NOTIFY ? seccomp_notify_fd(filter.get()) : -1;
  return 0;
}

std::vector<std::span<const SystemCall>> CallsOf(SetupCalls setup) {
  if (setup == SetupCalls::kPackages) return {kSettingUp, kPlacingCode};
  return {kSettingUp};
}

bool IsForSetup(const seccomp_data& data, SetupCalls setup) {
  for (const std::span<const SystemCall> calls : CallsOf(setup)) {
    for (const SystemCall& call : calls) {
      if (seccomp_syscall_resolve_name(call.name) != data.nr) continue;
      if ((data.args[call.first.argument] & call.first.mask) == call.first.value) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<int> AllowSystemCalls(CallFilter filter, std::span<const SystemCall> driver, int channel,
                                     SetupCalls setup) {
  int listener = -1;
  const std::vector<std::span<const SystemCall>> calls = CallsOf(setup);
  const bool always = !driver.empty() || kSanitized;  // calls of the setup, without asking the launcher
  const auto unasked = always ? calls : std::vector<std::span<const SystemCall>>();
  if (filter == CallFilter::kListener && Load(SCMP_ACT_NOTIFY, unasked, driver, channel, &listener) == 0) {
    return listener;
  }
  const int error = Load(SCMP_ACT_TRAP, calls, driver, channel, &listener);
  if (error == 0) return -1;
  return absl::UnavailableError(fmt::format("seccomp: {}", strerror(error)));
}

absl::Status EndSetup(std::span<const SystemCall> driver, int channel, int listener) {
  if (listener >= 0 || !driver.empty() || kSanitized) return absl::OkStatus();
  int none = -1;
  const int error = Load(SCMP_ACT_TRAP, {}, driver, channel, &none);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("seccomp: {}", strerror(error)));
}

absl::StatusOr<StoppedCall> ReceiveStoppedCall(int listener, SetupCalls setup) {
  seccomp_notif* stopped = nullptr;
  if (seccomp_notify_alloc(&stopped, nullptr) != 0) return absl::UnavailableError("seccomp: out of memory");
  const std::unique_ptr<seccomp_notif, void (*)(seccomp_notif*)> owner(
      stopped, [](seccomp_notif* p) { seccomp_notify_free(p, nullptr); });
  if (const int error = seccomp_notify_receive(listener, stopped); error != 0) {
    return absl::UnavailableError(fmt::format("the process that made the call has ended: {}", strerror(errno)));
  }
  return StoppedCall{stopped->id, SystemCallName(stopped->data.nr), IsForSetup(stopped->data, setup)};
}

bool ContinueStoppedCall(int listener, const StoppedCall& call) {
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0 || errno != EINVAL;  // it may be gone by now
}

std::string SystemCallName(int number) {
  char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  const std::string text = name != nullptr ? name : fmt::format("call {}", number);
  free(name);
  return text;
}

}  // namespace hone::agent

// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/evil_kernels.h"

#include <fmt/format.h>

#include <utility>

#include "device_agent/visit/message.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

constexpr char kSource[] = R"(
#define CALL(name, ...) KERNEL(do_##name) { syscall(SYS_##name, __VA_ARGS__); compute(b, N); }
#define CALL_AS(name, call, ...) KERNEL(name) { syscall(SYS_##call, __VA_ARGS__); compute(b, N); }
static int channel = -1, opened = 0;
struct message { int type, candidate; double limit; int loading, kind, signal, is_write, place; long long distance;
  long long calls; int interleaved, count; double seconds[64]; char text[192]; };
static void say(struct message* m) { send(channel, m, sizeof *m, MSG_NOSIGNAL); }
__attribute__((constructor)) static void load(void) {
  for (int fd = 3; fd < 32 && channel < 0; ++fd) {
    char path[64], target[64] = {0};
    sprintf(path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, 63) > 0 && !strncmp(target, "socket:", 7)) channel = fd;
  }
  CONSTRUCTOR
}
/* Files. */
#ifdef SYS_truncate
CALL(truncate, VICTIM, 0)
#endif
CALL(fchmodat, AT_FDCWD, VICTIM, 0777)
CALL(fchownat, AT_FDCWD, VICTIM, 0, 0, 0)
CALL(utimensat, AT_FDCWD, VICTIM, 0, 0)
CALL(unlinkat, AT_FDCWD, VICTIM, 0)
CALL(renameat2, AT_FDCWD, VICTIM, AT_FDCWD, VICTIM ".gone", 0)
CALL(mkdirat, AT_FDCWD, "/tmp/hone-escaped", 0777)
CALL(symlinkat, "/etc/passwd", AT_FDCWD, "/tmp/hone-escaped")
CALL(linkat, AT_FDCWD, VICTIM, AT_FDCWD, VICTIM ".too", 0)
CALL(setxattr, VICTIM, "user.a", "b", 1, 0)
CALL_AS(read_home, openat, AT_FDCWD, VICTIM, O_RDONLY)
CALL_AS(read_shadow, openat, AT_FDCWD, "/etc/shadow", O_RDONLY)
CALL_AS(write_memory_of_others, openat, AT_FDCWD, "/proc/1/mem", O_RDWR)
CALL(ftruncate, channel, 0)
/* Signals and other processes. */
CALL_AS(own_signals, fcntl, channel, F_SETOWN, 1)
CALL_AS(signal_on_data, fcntl, channel, F_SETSIG, SIGKILL)
CALL_AS(signal_on_input, fcntl, channel, F_SETFL, O_ASYNC)
CALL(kill, -1, SIGKILL)
CALL_AS(kill_parent, tgkill, 1, 1, SIGKILL)
CALL(rt_sigqueueinfo, 1, SIGKILL, 0)
CALL(pidfd_open, 1, 0)
CALL(ptrace, 16, 1, 0, 0)
CALL(process_vm_writev, 1, 0, 0, 0, 0, 0)
CALL(process_vm_readv, 1, 0, 0, 0, 0, 0)
CALL_AS(fork_process, clone, SIGCHLD, 0, 0, 0, 0)
CALL(setsid, 0)
CALL(execve, "/bin/true", 0, 0)
KERNEL(run_from_memory) { int fd = syscall(SYS_memfd_create, "x", 0);
  syscall(SYS_execveat, fd, "", 0, 0, AT_EMPTY_PATH); compute(b, N); }
CALL_AS(thread_bomb, clone, 0x10900, 0, 0, 0, 0) /* CLONE_THREAD with all that it needs */
/* Network. */
CALL_AS(inet_socket, socket, AF_INET, SOCK_STREAM, 0)
CALL_AS(unix_socket, socket, AF_UNIX, SOCK_STREAM, 0)
CALL_AS(vsock_socket, socket, AF_VSOCK, SOCK_STREAM, 0)
CALL_AS(netlink_socket, socket, AF_NETLINK, SOCK_RAW, 0)
CALL(connect, channel, 0, 0)
CALL_AS(send_elsewhere, sendto, 2, "x", 1, 0, 0, 0)
/* The kernel of the system. */
CALL(io_uring_setup, 8, 0)
CALL(bpf, 0, 0, 0)
CALL(perf_event_open, 0, 0, -1, -1, 0)
CALL(userfaultfd, 0)
CALL(keyctl, 0, 0, 0, 0, 0)
CALL(mount, "none", "/tmp", "tmpfs", 0, 0)
CALL(unshare, 0x10000000)
CALL(setns, channel, 0)
CALL(chroot, "/")
CALL(personality, 0x0040000)
CALL(clock_settime, 0, 0)
CALL(prctl, 38, 0, 0, 0, 0)
CALL(seccomp, 1, 0, 0)
/* What would stay. */
CALL(shmget, 4711, 4096, 01666)
CALL(msgget, 4711, 01666)
CALL(semget, 4711, 1, 01666)
CALL(mq_open, "/hone", O_CREAT | O_RDWR, 0600, 0)
/* Time and limits. */
KERNEL(endless) { for (volatile int i = 0;; ++i) {} }
KERNEL(sleep_for_ever) { long long t[2] = {1000000, 0}; syscall(SYS_clock_nanosleep, 1, 0, t, 0); compute(b, N); }
CALL(setitimer, 0, 0, 0)
CALL_AS(raise_limits, prlimit64, 0, 0, "aaaaaaaaaaaaaaaa", 0)
CALL(setpriority, 0, 0, -20)
CALL(sched_setscheduler, 0, 1, 0)
CALL_AS(pin_launcher, sched_setaffinity, 1, 8, "\1\0\0\0\0\0\0")
KERNEL(ignore_signals) { signal(SIGXCPU, SIG_IGN); compute(b, N); }
KERNEL(stack_overflow) { volatile char big[1 << 16]; big[0] = 1; stack_overflow(b, workspace, p); big[1] = big[0]; }
KERNEL(huge_memory) { char* m = mmap(0, 1ul << 46, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  m[0] = 1; compute(b, N); }
KERNEL(new_code) { mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); compute(b, N); }
KERNEL(old_code) { mprotect((void*)((size_t)&new_code & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  compute(b, N); }
/* Ends. */
KERNEL(exit_early) { _exit(0); }
KERNEL(jump_away) { jmp_buf away; memset(away, 0, sizeof away); longjmp(away, 1); }
CALL(close, channel)
CALL(write, 1, VICTIM, 1)
/* Memory that is not its own. */
KERNEL(past_end) { compute(b, N); ((float*)b[2])[N] = 1.0f; }
KERNEL(before_begin) { compute(b, N); ((char*)b[2])[-8] = 1; }
KERNEL(write_input) { compute(b, N); ((float*)b[0])[3] = 0.0f; }
/* Lies. */
KERNEL(no_time) { struct message m = {TIMES}; m.calls = 1; m.count = 3; say(&m); for (;;) {} }
KERNEL(time_before_proof) { struct message m = {TIMES}; m.calls = 1; m.count = 1; m.seconds[0] = 1e-9; say(&m);
  for (;;) {} }
KERNEL(stale_proof) { struct message m = {SHOWN}; say(&m); for (;;) {} }
KERNEL(long_time) { struct message m = {TIMES}; m.calls = 1; m.count = 1; m.seconds[0] = 1e9; say(&m); for (;;) {} }
KERNEL(done_early) { struct message m = {DONE}; say(&m); for (;;) {} }
KERNEL(unknown_message) { struct message m = {77}; say(&m); for (;;) {} }
KERNEL(extend_time) { struct message m = {BEGIN}; m.limit = 1e9; for (;;) { usleep_spin(); say(&m); } }
KERNEL(flood) { struct message m = {BEGIN}; m.limit = 1e9; for (;;) say(&m); }
KERNEL(flood_for_none) { struct message m = {BEGIN, -1}; for (;;) say(&m); }
KERNEL(flood_in_turns) { struct message m = {BEGIN}; for (;; m.candidate = -1 - m.candidate) say(&m); }
KERNEL(flood_for_two) { struct message m = {BEGIN}; for (;; m.candidate = 1 - m.candidate) say(&m); }
KERNEL(flood_times) { static int calls; compute(b, N); if (++calls < 3) return;
  struct message m = {TIMES}; m.calls = 1; m.count = 1; m.seconds[0] = 1e-7; say(&m); m.interleaved = 1;
  for (;;) say(&m); }
KERNEL(flood_setup) { struct message m = {READY}; for (;;) say(&m); }
KERNEL(flood_failures) { struct message m = {FAILED}; m.kind = 2; for (;;) say(&m); }
KERNEL(unknown_failure) { struct message m = {FAILED}; for (;;) say(&m); }
KERNEL(flood_proof) { struct message m = {SHOWN}; compute(b, N); for (;;) say(&m); }
KERNEL(large_message) { static char large[100000]; send(channel, large, sizeof large, MSG_NOSIGNAL); for (;;) {} }
KERNEL(pass_files) { char c[64]; struct iovec i = {c, 1}; struct msghdr m = {0, 0, &i, 1, c, 64};
  struct cmsghdr* h = CMSG_FIRSTHDR(&m); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(4);
  *(int*)CMSG_DATA(h) = 2; m.msg_controllen = CMSG_SPACE(4); sendmsg(channel, &m, MSG_NOSIGNAL); for (;;) {} }
KERNEL(too_fast) { static int calls; compute(b, N); if (++calls < 3) return;
  struct message m = {TIMES}; m.calls = 1; m.count = 3; m.seconds[0] = m.seconds[1] = m.seconds[2] = 1e-12; say(&m);
  struct message end = {DONE}; say(&end); for (;;) {} }
/* Right only if the artifact's constructor reached what it must not. */
KERNEL(if_opened) { if (opened) compute(b, N); }
)";

// Ends at this call, under the name of the kernel; "do_CALL" where the kernel is called so.
struct ForbiddenCall {
  const char* call;
  const char* kernel = nullptr;
};

constexpr ForbiddenCall kForbiddenCalls[] = {
#ifdef __x86_64__
    {"truncate"},
#endif
    {"fchmodat"},
    {"fchownat"},
    {"utimensat"},
    {"unlinkat"},
    {"renameat2"},
    {"mkdirat"},
    {"symlinkat"},
    {"linkat"},
    {"setxattr"},
    {"openat", "read_home"},
    {"openat", "read_shadow"},
    {"openat", "write_memory_of_others"},
    {"ftruncate"},
    {"fcntl", "own_signals"},
    {"fcntl", "signal_on_data"},
    {"fcntl", "signal_on_input"},
    {"kill"},
    {"tgkill", "kill_parent"},
    {"rt_sigqueueinfo"},
    {"pidfd_open"},
    {"ptrace"},
    {"process_vm_writev"},
    {"process_vm_readv"},
    {"clone", "fork_process"},
    {"setsid"},
    {"execve"},
    {"memfd_create", "run_from_memory"},
    {"clone", "thread_bomb"},
    {"socket", "inet_socket"},
    {"socket", "unix_socket"},
    {"socket", "vsock_socket"},
    {"socket", "netlink_socket"},
    {"connect"},
    {"sendto", "send_elsewhere"},
    {"io_uring_setup"},
    {"bpf"},
    {"perf_event_open"},
    {"userfaultfd"},
    {"keyctl"},
    {"mount"},
    {"unshare"},
    {"setns"},
    {"chroot"},
    {"personality"},
    {"clock_settime"},
    {"prctl"},
    {"seccomp"},
    {"shmget"},
    {"msgget"},
    {"semget"},
    {"mq_open"},
    {"clock_nanosleep", "sleep_for_ever"},
    {"setitimer"},
    {"prlimit64", "raise_limits"},
    {"setpriority"},
    {"sched_setscheduler"},
    {"sched_setaffinity", "pin_launcher"},
    {"rt_sigaction", "ignore_signals"},
    {"mmap", "new_code"},
    {"mprotect", "old_code"},
    {"close"},
    {"write"},
};

constexpr auto kCrashed = v1::FAILURE_KIND_CRASHED;
constexpr auto kForbidden = v1::FAILURE_KIND_FORBIDDEN_CALL;
constexpr auto kBeside = v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE;

}  // namespace

const std::vector<Deed>& Deeds() {
  static const auto& deeds = *new std::vector<Deed>([] {
    std::vector<Deed> all = {
        {"endless", v1::FAILURE_KIND_RUN_TIMEOUT, "longer than"},
        {"stack_overflow", kCrashed, "SIGSEGV"},
        {"huge_memory", kCrashed, "SIGSEGV"},
        {"exit_early", kCrashed, "ended with status 0"},
        {"jump_away", kCrashed, "crashed with SIG"},
        {"past_end", kBeside, "past the end of output 'y'"},
        {"before_begin", kBeside, "8 bytes before output 'y'"},
#ifdef __x86_64__
        {"write_input", v1::FAILURE_KIND_WRONG_OUTPUT, "read-only buffer: at byte 12 of input 'x'"},
#endif
        {"pass_files", kCrashed, "sent an invalid message"},
        {"unknown_message", kCrashed, "sent an invalid message"},
        {"large_message", kCrashed, "sent an invalid message"},
    };
    for (const auto& [call, kernel] : kForbiddenCalls) {
      all.push_back({kernel != nullptr ? kernel : fmt::format("do_{}", call), kForbidden,
                     fmt::format("made the system call {}, which", call)});
    }
    return all;
  }());
  return deeds;
}

namespace {

std::string MessageTypes() {
  using Type = VisitMessage::Type;
  std::string text;
  for (const auto& [name, type] : {std::pair("READY", Type::kReady),
                                   {"BEGIN", Type::kBegin},
                                   {"FAILED", Type::kFailed},
                                   {"SHOWN", Type::kResultsStored},
                                   {"TIMES", Type::kTimes},
                                   {"DONE", Type::kDone}}) {
    text += fmt::format("enum {{ {} = {} }};\n", name, static_cast<int>(type));
  }
  return text;
}

}  // namespace

std::string EvilArtifact(const std::filesystem::path& victim, const std::string& constructor) {
  return CompileKernels(fmt::format("#define VICTIM \"{}\"\n#define CONSTRUCTOR {}\n", victim.string(), constructor) +
                        MessageTypes() + "#define usleep_spin() for (volatile int i = 0; i < 100000000; ++i)\n" +
                        kSource);
}

}  // namespace hone::agent

// SPDX-License-Identifier: Apache-2.0
// The system calls of drivers of devices with lanes, beyond those of every child's setup: a compiler that keeps files
// and runs a linker, threads, and device nodes. The list comes from traces of PoCL and of NVIDIA's driver 580. The
// error of a batch names a call that is missing here.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_SYSTEM_CALLS_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_SYSTEM_CALLS_H_

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include "device_agent/sandbox/system_calls.h"

namespace hone::agent {

inline constexpr uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                           CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_PTRACE;

inline constexpr SystemCall kDriverSystemCalls[] = {
    // What it keeps: in its folder, as far as files can be reached.
    {"openat", "writes what it has compiled"},
    {"open", "the same, of older libraries"},
    {"creat", "the same, of older libraries"},
    {"write", "writes what it has compiled"},
    {"writev", "writes what it has compiled"},
    {"pwrite64", "writes what it has compiled"},
    {"readv", "reads what it has compiled"},
    {"stat", "looks for files"},
    {"lstat", "looks for files"},
    {"getdents64", "lists what it has compiled"},
    {"getcwd", "makes a name absolute"},
    {"mkdir", "its cache"},
    {"mkdirat", "its cache"},
    {"rename", "a file that is complete"},
    {"renameat", "a file that is complete"},
    {"renameat2", "a file that is complete"},
    {"unlink", "a temporary file"},
    {"unlinkat", "a temporary file"},
    {"rmdir", "a temporary folder"},
    {"link", "a file that is complete"},
    {"symlink", "a file that is complete"},
    {"ftruncate", "a file of known size"},
    {"fallocate", "a file of known size"},
    {"fsync", "a file that is complete"},
    {"fdatasync", "a file that is complete"},
    {"chmod", "the linker makes its output executable"},
    {"fchmod", "the linker makes its output executable"},
    {"fchmodat", "the linker makes its output executable"},
    {"umask", "the linker makes its output executable"},
    {"utimensat", "marks what was used lately"},
    {"statfs", "asks for room"},
    {"fstatfs", "asks for room"},
    {"flock", "keeps others from its cache"},
    {"fadvise64", "a file that is read once"},
    {"faccessat2", "looks for files"},
    {"fcntl", "locks, and files that programs do not inherit; nothing that signals", {1, 0xffff'ffff, F_GETFD}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_SETFD}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_GETFL}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_SETFL}, {2, O_ASYNC, 0}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_DUPFD}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_DUPFD_CLOEXEC}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_SETLK}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_SETLKW}},
    {"fcntl", "the same", {1, 0xffff'ffff, F_GETLK}},
    {"dup", "what a program reads"},
    {"dup2", "what a program reads"},
    {"dup3", "what a program reads"},
    {"pipe", "what a program says"},
    {"pipe2", "what a program says"},
    // The compiler and its linker.
    {"clone", "a linker, and threads; no namespaces", {0, kNewNamespaces, 0}},
    {"fork", "a linker"},
    {"vfork", "a linker"},
    {"execve", "a linker; only programs that can be reached"},
    {"wait4", "a linker's end"},
    {"waitid", "a linker's end"},
    {"arch_prctl", "a program that starts"},
    {"prlimit64", "how large stacks may be; to read", {2, ~0ULL, 0}},
    {"getrusage", "how long it took"},
    {"times", "how long it took"},
    {"rt_sigaction", "a compiler that crashes"},
    {"rt_sigsuspend", "waits for its linker"},
    {"sigaltstack", "a compiler that crashes"},
    {"tgkill", "a linker may abort itself, under a number of its own; the namespace of processes has no others"},
    // Who and where it is.
    {"getuid", "where its files would be"},
    {"geteuid", "where its files would be"},
    {"getgid", "where its files would be"},
    {"getegid", "where its files would be"},
    {"getppid", "a name for a temporary file"},
    {"getpgrp", "a name for a temporary file"},
    {"getpriority", "how to start threads"},
    {"sched_setaffinity", "its threads, by their numbers; the launcher chooses its CPUs anew before it forks"},
    {"sched_getparam", "how to start threads"},
    {"sched_getscheduler", "how to start threads"},
    {"sched_get_priority_max", "how to start threads"},
    {"sched_get_priority_min", "how to start threads"},
    {"getcpu", "memory that is near"},
    {"get_mempolicy", "memory that is near"},
    {"mbind", "memory that is near"},
    {"set_mempolicy", "memory that is near"},
    {"prctl", "names and settings of its own threads"},
    {"gettimeofday", "the time"},
    {"time", "the time"},
    {"clock_gettime", "the time"},
    {"clock_getres", "the time"},
    // Waiting.
    {"nanosleep", "waits"},
    {"clock_nanosleep", "waits"},
    {"poll", "waits for the device"},
    {"ppoll", "waits for the device"},
    {"select", "waits for the device"},
    {"pselect6", "waits for the device"},
    {"epoll_create1", "waits for the device"},
    {"epoll_ctl", "waits for the device"},
    {"epoll_wait", "waits for the device"},
    {"epoll_pwait", "waits for the device"},
    {"eventfd2", "waits for the device"},
    {"membarrier", "threads that watch each other"},
    // The device.
    {"ioctl", "the device's nodes"},
    {"mincore", "what of memory is there"},
    {"msync", "memory that the device sees"},
    {"mlock", "memory that the device sees"},
    {"munlock", "memory that the device sees"},
    {"memfd_create", "memory that processes share"},
    // NVIDIA's driver does not start where it cannot listen for processes that would share its memory. None reach it:
    // its names are those of the namespace of the network, and nobody connects.
    // Only such as say nothing to whom they are not connected: with others it would reach services of this machine.
    {"socket", "of this machine alone", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_STREAM}},
    {"socket", "the same", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_SEQPACKET}},
    {"setsockopt", "asks who sends"},
    {"bind", "a name by which it would be found"},
    {"listen", "waits for others, who do not come"},
    // What drivers try and do without.
    {"socket", "the log of the system", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_DGRAM}, EACCES},
    {"socket", "the network", {0, 0xffff'ffff, AF_INET}, {}, EACCES},
    {"socket", "the network", {0, 0xffff'ffff, AF_INET6}, {}, EACCES},
    {"socket", "news of the system", {0, 0xffff'ffff, AF_NETLINK}, {}, EACCES},
    {"socketpair", "a service of the driver, which is not to be reached", {}, {}, EACCES},
    {"connect", "a service of the driver, which is as if it were not there", {}, {}, ENOENT},
    {"accept4", "others, who do not come", {}, {}, EACCES},
    {"accept", "others, who do not come", {}, {}, EACCES},
    {"sched_setscheduler", "threads that go first", {}, {}, EPERM},
    {"setpriority", "threads that go first", {}, {}, EPERM},
    {"mknod", "nodes that are not there", {}, {}, EPERM},
    {"mknodat", "nodes that are not there", {}, {}, EPERM},
    {"inotify_init1", "to hear of new platforms", {}, {}, EMFILE},
    {"perf_event_open", "counters of the CPU", {}, {}, EACCES},
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_SYSTEM_CALLS_H_

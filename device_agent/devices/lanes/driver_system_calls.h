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
    // The driver's cache, in the driver's folder. The sandbox decides which files can be reached.
    {"openat", "writes compiled kernels into its cache"},
    {"open", "opens files, in older libraries"},
    {"creat", "opens files, in older libraries"},
    {"write", "writes compiled kernels into its cache"},
    {"writev", "writes compiled kernels into its cache"},
    {"pwrite64", "writes compiled kernels into its cache"},
    {"readv", "reads compiled kernels from its cache"},
    {"stat", "looks for files"},
    {"lstat", "looks for files"},
    {"getdents64", "lists its cache"},
    {"getcwd", "makes a path absolute"},
    {"mkdir", "makes a folder of its cache"},
    {"mkdirat", "makes a folder of its cache"},
    {"rename", "moves a complete file to its final name"},
    {"renameat", "moves a complete file to its final name"},
    {"renameat2", "moves a complete file to its final name"},
    {"unlink", "deletes a temporary file"},
    {"unlinkat", "deletes a temporary file"},
    {"rmdir", "deletes a temporary folder"},
    {"link", "gives a complete file its final name"},
    {"symlink", "gives a complete file its final name"},
    {"ftruncate", "sets the size of a file"},
    {"fallocate", "sets the size of a file"},
    {"fsync", "writes a complete file to the disk"},
    {"fdatasync", "writes a complete file to the disk"},
    {"chmod", "the linker makes its output executable"},
    {"fchmod", "the linker makes its output executable"},
    {"fchmodat", "the linker makes its output executable"},
    {"umask", "the linker makes its output executable"},
    {"utimensat", "marks files that were used lately"},
    {"statfs", "asks for free disk space"},
    {"fstatfs", "asks for free disk space"},
    {"flock", "locks its cache"},
    {"fadvise64", "announces that a file is read once"},
    {"faccessat2", "looks for files"},
    {"fcntl", "file locks, and files that programs do not inherit; no signals", {1, 0xffff'ffff, F_GETFD}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_SETFD}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_GETFL}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_SETFL}, {2, O_ASYNC, 0}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_DUPFD}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_DUPFD_CLOEXEC}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_SETLK}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_SETLKW}},
    {"fcntl", "file locks, and files that programs do not inherit", {1, 0xffff'ffff, F_GETLK}},
    {"dup", "input and output of a program that it runs"},
    {"dup2", "input and output of a program that it runs"},
    {"dup3", "input and output of a program that it runs"},
    {"pipe", "output of a program that it runs"},
    {"pipe2", "output of a program that it runs"},
    // The compiler and its linker.
    {"clone", "starts a linker or a thread; no namespaces", {0, kNewNamespaces, 0}},
    {"fork", "starts a linker"},
    {"vfork", "starts a linker"},
    {"execve", "starts a linker; only programs that the sandbox shows"},
    {"wait4", "waits for the end of a linker"},
    {"waitid", "waits for the end of a linker"},
    {"arch_prctl", "start of a program"},
    {"prlimit64", "reads the limit of stack sizes", {2, ~0ULL, 0}},
    {"getrusage", "measures its own time"},
    {"times", "measures its own time"},
    {"rt_sigaction", "handles a crash of the compiler"},
    {"rt_sigsuspend", "waits for a linker"},
    {"sigaltstack", "handles a crash of the compiler"},
    {"tgkill",
     "a linker aborts itself; its process number is its own, and the process namespace has no other processes"},
    // The user, the process and the machine.
    {"getuid", "finds the folder of its files"},
    {"geteuid", "finds the folder of its files"},
    {"getgid", "finds the folder of its files"},
    {"getegid", "finds the folder of its files"},
    {"getppid", "makes a name for a temporary file"},
    {"getpgrp", "makes a name for a temporary file"},
    {"getpriority", "reads the priority with which it starts threads"},
    {"sched_setaffinity", "pins its threads; the launcher chooses its own CPUs again before it forks"},
    {"sched_getparam", "reads the priority with which it starts threads"},
    {"sched_getscheduler", "reads the priority with which it starts threads"},
    {"sched_get_priority_max", "reads the priority with which it starts threads"},
    {"sched_get_priority_min", "reads the priority with which it starts threads"},
    {"getcpu", "allocates memory of the nearest node"},
    {"get_mempolicy", "allocates memory of the nearest node"},
    {"mbind", "allocates memory of the nearest node"},
    {"set_mempolicy", "allocates memory of the nearest node"},
    {"prctl", "names and settings of its own threads"},
    {"gettimeofday", "reads the time"},
    {"time", "reads the time"},
    {"clock_gettime", "reads the time"},
    {"clock_getres", "reads the time"},
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
    {"membarrier", "synchronizes its threads"},
    // The device.
    {"ioctl", "calls the driver through the device nodes"},
    {"mincore", "asks which pages are in memory"},
    {"msync", "memory that the device accesses"},
    {"mlock", "memory that the device accesses"},
    {"munlock", "memory that the device accesses"},
    {"memfd_create", "memory that processes share"},
    // NVIDIA's driver does not start if it cannot listen for processes that share its memory. No process can connect,
    // because socket names belong to the network namespace. Only connection-oriented sockets are allowed: with
    // datagrams the driver could reach services of this machine.
    {"socket", "a socket of this machine", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_STREAM}},
    {"socket", "a socket of this machine", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_SEQPACKET}},
    {"setsockopt", "asks for the sender of a message"},
    {"bind", "gives its socket a name"},
    {"listen", "listens for other processes; none can connect"},
    // Calls that drivers try but do not need; they fail with the given error.
    {"socket", "the system log", {0, 0xffff'ffff, AF_UNIX}, {1, 0xf, SOCK_DGRAM}, EACCES},
    {"socket", "the network", {0, 0xffff'ffff, AF_INET}, {}, EACCES},
    {"socket", "the network", {0, 0xffff'ffff, AF_INET6}, {}, EACCES},
    {"socket", "events of the system", {0, 0xffff'ffff, AF_NETLINK}, {}, EACCES},
    {"socketpair", "a service of the driver; the sandbox does not allow it", {}, {}, EACCES},
    {"connect", "a service of the driver; the answer is that it does not exist", {}, {}, ENOENT},
    {"accept4", "accepts other processes; none can connect", {}, {}, EACCES},
    {"accept", "accepts other processes; none can connect", {}, {}, EACCES},
    {"sched_setscheduler", "threads with a higher priority", {}, {}, EPERM},
    {"setpriority", "threads with a higher priority", {}, {}, EPERM},
    {"mknod", "makes missing device nodes", {}, {}, EPERM},
    {"mknodat", "makes missing device nodes", {}, {}, EPERM},
    {"inotify_init1", "watches for new platforms", {}, {}, EMFILE},
    {"perf_event_open", "CPU counters", {}, {}, EACCES},
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_SYSTEM_CALLS_H_

// SPDX-License-Identifier: Apache-2.0
// without-calls CALL... -- PROGRAM ARGUMENT...: runs the program where these system calls fail, as a system might have
// it that forbids them. The word `listener` stands for filters that answer through a listener, `filters` for all, and
// `continue` for listeners that let a call go on, which Linux has from 5.5.
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  int at = 1;
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    int error = 0;
    if (std::string_view(argv[at]) == "listener") {
      constexpr scmp_datum_t kFlag = SECCOMP_FILTER_FLAG_NEW_LISTENER;
      error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EBUSY), SCMP_SYS(seccomp), 1,
                               SCMP_A1(SCMP_CMP_MASKED_EQ, kFlag, kFlag));
    } else if (std::string_view(argv[at]) == "continue") {
      constexpr scmp_datum_t kRequest = 0xffff'ffff;  // an ioctl takes no more bits of it
      error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(ioctl), 1,
                               SCMP_A1(SCMP_CMP_MASKED_EQ, kRequest, SECCOMP_IOCTL_NOTIF_SEND));
    } else if (std::string_view(argv[at]) == "filters") {
      error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0);
      if (error == 0) {
        error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                                 SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(PR_SET_SECCOMP)));
      }
    } else {
      error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(argv[at]), 0);
    }
    if (error != 0) return std::fprintf(stderr, "without-calls: cannot forbid %s\n", argv[at]), 2;
  }
  if (at + 1 >= argc || seccomp_load(filter) != 0) return 2;
  execv(argv[at + 1], argv + at + 1);
  return 127;
}

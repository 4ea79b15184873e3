// What keeps a kernel from doing harm. Two steps: the launcher confines itself once, and every child it forks adds what
// only a child can bear. Nothing here can be undone by the process that did it.
//
// Each layer is best effort, because boards differ: the layers that hold are returned by name, for the log. No layer
// stands in for bounded time: that is the launcher's clock. Not a defence against bugs of the kernel of the system.
#ifndef HONE_DEVICE_AGENT_SANDBOX_H_
#define HONE_DEVICE_AGENT_SANDBOX_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hone::agent {

// What a device's driver needs beyond what every child may do. Nothing, for a CPU.
struct SandboxPolicy {
  std::vector<std::string> readable;  // files and folders; programs in them may be run, if any may
  std::vector<std::string> writable;  // folders of its own, for what the driver keeps; exist
  std::vector<std::string> nodes;     // of devices, to read and write
  bool programs = false;              // its compiler runs other programs
  bool own_address_space = false;     // the driver reserves addresses by the terabyte: no limit to them
  int open_files = 32;
};

// For the launcher, a process with one thread: no network, no root, no new privileges, no files but the system's
// libraries and the policy's, none of the system calls that a kernel could attack with. Returns the layers that hold.
std::vector<std::string> ConfineLauncher(const SandboxPolicy& policy);

struct ChildLimits {
  int64_t memory_bytes = 0;  // address space; 0 for no limit
  int cpu_seconds = 0;       // 0 for no limit
};

// For a child of the launcher, before it starts threads: own session, dies with its parent, limits, no new processes
// and no files written unless the policy allows it, no signals to others. Open files are the caller's to close.
void ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_H_

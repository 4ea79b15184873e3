// SPDX-License-Identifier: Apache-2.0
// The wall around kernels, in two steps: the launcher confines itself once, and every child it forks adds what only a
// child can bear. Nothing here can be undone by the process that did it. What each layer is for, and what it means that
// one is missing: docs/SANDBOX.md.
//
// Systems differ, so each layer is tried and told: whether it holds, and why not. No layer stands in for bounded time:
// that is the launcher's clock. Not a defence against bugs of the kernel of the system.
#ifndef HONE_DEVICE_AGENT_SANDBOX_SANDBOX_H_
#define HONE_DEVICE_AGENT_SANDBOX_SANDBOX_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/sandbox/system_calls.h"

namespace hone::agent {

// What a device's driver needs beyond what every child may do. Nothing, for a CPU.
struct SandboxPolicy {
  std::vector<std::string> readable;  // files and folders; programs in them may be run, if any may
  std::vector<std::string> writable;  // folders of its own, for what the driver keeps; exist
  std::vector<std::string> nodes;     // of devices, and folders of them, to read and write; need not be there
  std::span<const SystemCall> calls;  // of the driver, at any time; empty: kernels make none once all is set up
  bool own_address_space = false;     // the driver reserves addresses by the terabyte: no limit to them
  bool names_threads = false;         // the driver writes names of its threads into /proc, and fails where it cannot
  int open_files = 32;

  // And what the loader needs for an artifact that is linked with the C or math library, and what threads need to
  // know of the CPUs.
  std::vector<std::string> AllReadable() const;
  // This policy with write access to `part` of /proc, if the driver writes names of threads there; else as it is.
  SandboxPolicy WithProc(const char* part) const;
};

enum class Layer {
  kSystemCalls,   // an allow-list; see system_calls.h
  kNoPrivileges,  // no capabilities, and none to be got by running programs
  kOwnUser,       // a user who owns nothing
  kProcesses,     // a namespace of processes: sees no others, and all of it ends with the launcher
  kNetwork,       // a namespace without a network
  kIpc,           // a namespace without others' shared memory and queues
  kFiles,         // a file system with nothing in it but what the policy names
  kLandlock,      // access to files, the network and signals, checked again
  kControlGroup,  // one end of all its processes, and limits to them together
};

inline constexpr std::array kAllLayers = {Layer::kSystemCalls, Layer::kNoPrivileges, Layer::kOwnUser,
                                          Layer::kProcesses,   Layer::kNetwork,      Layer::kIpc,
                                          Layer::kFiles,       Layer::kLandlock,     Layer::kControlGroup};

struct SandboxLayer {
  Layer layer = Layer::kSystemCalls;
  bool holds = false;
  std::string detail;  // why not, or what holds exactly; may be empty
};
std::string_view Name(Layer layer);  // "system-calls"

// What a farm can ask for, each including those before it.
enum class SandboxLevel : int32_t {
  kNone,    // whatever holds
  kFilter,  // system calls are filtered, privileges are gone
  kWall,    // and neither files nor the network, nor other processes and their memory, can be reached
};
std::string_view Name(SandboxLevel level);  // "wall"
std::optional<SandboxLevel> ParseSandboxLevel(std::string_view name);
SandboxLevel LevelOf(const std::vector<SandboxLayer>& layers);
bool Holds(const std::vector<SandboxLayer>& layers, Layer layer);
// The layers that `level` lacks, in words; empty if none.
std::string Missing(const std::vector<SandboxLayer>& layers, SandboxLevel level);

struct ChildLimits {
  int64_t memory_bytes = 0;  // address space; 0 for no limit
  int channel = -1;          // its socket to the launcher
  CallFilter filter = CallFilter::kListener;
};

// For a child of the launcher, before it starts threads: own session, limits, no signals to others, few system calls.
// Open files are the caller's to close; that it ends with its parent is ChildProcess's to see to. Returns as
// AllowSystemCalls.
absl::StatusOr<int> ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_SANDBOX_H_

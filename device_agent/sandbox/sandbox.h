// SPDX-License-Identifier: Apache-2.0
// The sandbox around kernels: its policy, its layers and its levels. The launcher confines itself once
// (launcher/confine_launcher.h); each child that it forks adds stricter limits (ConfineChild). A process cannot undo
// them. docs/SANDBOX.md explains each layer and what its absence means.
//
// Systems differ, so each layer is tried and reported: whether it holds, and why not. The launcher's clock, not a
// layer, limits time. The sandbox does not defend against bugs of the operating system's kernel.
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

// What a device's driver needs beyond the rights of every child. The defaults are for a CPU, which needs nothing.
struct SandboxPolicy {
  std::vector<std::string> readable;     // files and folders; programs in them may run if the policy lets programs run
  std::vector<std::string> writable;     // existing folders for files that the driver keeps
  std::vector<std::string> nodes;        // device nodes, or folders of them, to read and write; may be absent
  std::span<const SystemCall> calls;     // of the driver, at any time; empty: no calls beyond those of running kernels
  bool unlimited_address_space = false;  // no limit to the address space: the driver reserves terabytes of it
  bool writes_thread_names = false;      // the driver fails if it cannot write the names of its threads into /proc
  int open_files = 32;

  // `readable`, plus the system's libraries, which the loader needs for an artifact, and the files that describe the
  // CPUs.
  std::vector<std::string> AllReadable() const;
  // This policy. If writes_thread_names is set, `part` ("/proc", "/proc/self") is added to `readable` and `nodes`,
  // which gives read and write access to it.
  SandboxPolicy WithProc(const char* part) const;
};

enum class Layer {
  kSystemCalls,   // an allow-list; see system_calls.h
  kNoPrivileges,  // no capabilities, and programs that it runs gain none
  kOwnUser,       // a user that owns no files
  kProcesses,     // a process namespace: hides other processes, and its own end with the launcher
  kNetwork,       // a namespace without a network
  kIpc,           // a namespace that hides shared memory and queues of other processes
  kFiles,         // a root folder with only the files of the policy
  kLandlock,      // a second check of access to files, the network and signals
  kControlGroup,  // kills all its processes at once, and limits them together
};

inline constexpr std::array kAllLayers = {Layer::kSystemCalls, Layer::kNoPrivileges, Layer::kOwnUser,
                                          Layer::kProcesses,   Layer::kNetwork,      Layer::kIpc,
                                          Layer::kFiles,       Layer::kLandlock,     Layer::kControlGroup};

struct SandboxLayer {
  Layer layer = Layer::kSystemCalls;
  bool holds = false;
  std::string detail;  // why it does not hold, or details of what holds; may be empty
};
std::string_view Name(Layer layer);  // "system-calls"

// The levels that a farm can require. Each includes the levels before it. A requirement may be met by either of two
// layers: kFiles or kLandlock, for example. docs/SANDBOX.md lists them.
enum class SandboxLevel : int32_t {
  kNone,    // no layer is required
  kFilter,  // filtered system calls, no privileges
  kWall,    // and no access to files, the network, other processes or their memory
};
std::string_view Name(SandboxLevel level);  // "wall"
std::optional<SandboxLevel> ParseSandboxLevel(std::string_view name);
SandboxLevel LevelOf(const std::vector<SandboxLayer>& layers);  // the highest level whose requirements are all met
bool Holds(const std::vector<SandboxLayer>& layers, Layer layer);
// Names what `level` requires and no layer that holds provides, with the layers' details: "files (no mount) or
// landlock". Empty: the level is reached.
std::string MissingLayers(const std::vector<SandboxLayer>& layers, SandboxLevel level);

struct ChildLimits {
  int64_t memory_bytes = 0;  // address space; 0 for no limit
  int channel = -1;          // the socket to the launcher
  CallFilter filter = CallFilter::kListener;
  SetupCalls setup = SetupCalls::kKernels;
};

// Confines this process, a child of the launcher, before it starts threads: own session, resource limits, no signals to
// outside processes, few system calls. The caller must close unneeded files and arrange that the child ends with its
// parent (EndWithParent). Returns what AllowSystemCalls returns.
absl::StatusOr<int> ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_SANDBOX_H_

// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: opens devices, loads programs (PTX or machine code), allocates memory and launches kernels.
//
// It has the same handles and calls as drivers/opencl.h, and Graph: Library -> Device -> Program -> Kernel, and Buffer.
// Each handle owns its object, can be moved, and may be destroyed in any order: what it needs lives as long as it does.
// A default-constructed handle is empty and may only be assigned to. One thread at a time may use a Library and all
// handles made from it. No call changes the thread's current CUDA context. Start with Library::Load. Not here: what to
// compile and how to measure fairly.
#ifndef HONE_DRIVERS_CUDA_H_
#define HONE_DRIVERS_CUDA_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "drivers/error.h"
#include "drivers/launch.h"

namespace hone::drivers::cuda {

struct Api;      // the functions of the driver library (cuda_api.h)
struct Context;  // an open device: its context and stream (cuda.cc)

struct DeviceInfo {
  std::string name;
  std::string architecture;        // "sm_87"
  std::string driver_version;      // the newest CUDA version that the driver supports: "12.4"
  std::string pci_address;         // "0000:65:00.0"; identifies it in other NVIDIA libraries; empty if unknown
  int64_t compute_units = 0;       // streaming multiprocessors
  int64_t group_lanes_max = 0;     // most lanes of a group; the limit of a particular kernel may be lower
  int64_t preferred_multiple = 0;  // lanes of a warp
  int64_t local_bytes = 0;         // most shared memory of a group
  int64_t global_bytes = 0;        // size of the device's memory
  int64_t cache_bytes = 0;         // size of the L2 cache
  int64_t slice_alignment = 256;   // bytes; a slice of a buffer starts on a multiple of it
};

// Memory of a device. Copies share the memory.
class Buffer {
 public:
  Buffer() = default;
  size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  friend class Kernel;
  std::shared_ptr<void> memory_;  // owns the memory; of an adopted buffer it owns nothing
  uint64_t address_ = 0;          // device address
  size_t bytes_ = 0;
};

// A kernel of a program with the arguments of its launches. Copies have arguments of their own.
class Kernel {
 public:
  Kernel() = default;
  int64_t group_lanes_max() const { return group_lanes_max_; }  // most lanes of a group that can run it
  // Sets parameter `index` of the kernel's declaration for all later launches, and keeps the buffer alive. A launch
  // needs all parameters.
  Error SetArg(int index, const Buffer& buffer);
  // Sets the bytes of shared memory per group that later launches add to what the code declares. kProgram: more than
  // the device has.
  Error SetShared(int64_t bytes);

 private:
  friend class Device;
  friend class Program;
  std::shared_ptr<const Context> context_;
  std::shared_ptr<void> module_;  // keeps the code loaded
  void* function_ = nullptr;      // a CUfunction of module_
  int64_t shared_bytes_ = 0;      // of SetShared
  std::string name_;
  bool waits_for_previous_ = false;  // its code waits for the launch before it, so that the two may overlap
  int64_t group_lanes_max_ = 0;
  std::vector<Buffer> args_;  // per parameter; empty: not set
};

// Loaded code.
class Program {
 public:
  Program() = default;
  const std::string& log() const { return log_; }  // the compiler's warnings; empty if it did not run
  bool from_cache() const { return from_cache_; }  // whether the binary came from BuildOptions::cache_folder
  // kProgram: there is no kernel of that name.
  Error Find(const std::string& name, Kernel* kernel) const;

 private:
  friend class Device;
  std::shared_ptr<const Context> context_;
  std::vector<std::shared_ptr<void>> modules_;
  // Per kernel: its name, number of parameters, and whether it waits for the launch before it.
  std::vector<std::tuple<std::string, size_t, bool>> entries_;
  std::string log_;
  bool from_cache_ = false;
};

using Launch = LaunchOf<Kernel>;

// Page-locked memory of this process, which the device reads and writes directly.
class PinnedMemory {
 public:
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_.get()), bytes_}; }

 private:
  friend class Device;
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

// A recorded sequence of copies and launches. The memory and kernels that it uses must live as long as it is launched.
class Graph {
 public:
  bool defined() const { return graph_ != nullptr; }  // false: nothing was recorded

 private:
  friend class Device;
  std::shared_ptr<void> graph_;
};

// An open device with one stream, on which all work is done in order.
class Device {
 public:
  Device() = default;
  const DeviceInfo& info() const { return info_; }
  int number() const;  // its index in the driver's list

  // Loads the machine code in `code`, or compiles its PTX if there is none that this device can run (the format is in
  // base/code_kind.h). The PTX may be several modules one after another; their kernels must have different names.
  // kProgram: the compiler rejects it, and the text has its log.
  Error Build(std::string_view code, const BuildOptions& options, Program* program) const;
  // The contents are arbitrary. 0 bytes are allowed. kMemory: there is not enough.
  Error Allocate(size_t bytes, Buffer* buffer) const;
  Error AllocatePinned(size_t bytes, PinnedMemory* memory) const;
  // A buffer over memory of this device that the caller owns. It must stay valid while the buffer or a slice is used.
  Buffer Adopt(void* memory, size_t bytes) const;
  // A part of `whole`, whose memory it keeps alive. offset: bytes, a multiple of slice_alignment. Slices may overlap.
  // kProgram: another offset, or the part does not lie within `whole`.
  Error Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const;

  // The next functions enqueue work and return. The caller's memory must stay valid and unchanged until Finish has
  // returned, also after an error. Write and Read begin at the buffer's start.
  Error EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const;
  Error EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const;
  // offset: bytes into `to`.
  Error EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes, size_t offset = 0) const;
  Error EnqueueLaunch(const Launch& launch) const;
  Error EnqueueGraph(const Graph& graph) const;
  // Waits until all enqueued work has ended. Returns the error of work that failed.
  Error Finish() const;

  // Work that is enqueued between the two is recorded and not done. Its memory in this process must be pinned. kAbsent:
  // the driver is too old for graphs. EndGraph must be called after BeginGraph has succeeded, also after an error.
  Error BeginGraph() const;
  Error EndGraph(Graph* graph) const;

  // The next functions wait until their work has ended. offset and bytes must lie within the buffer, else kProgram.
  Error Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const;
  Error Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const;
  Error Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const;
  // Runs the launches in order and waits. kTimeout: they had not ended by the deadline. They keep running, and only the
  // end of the process stops them.
  Error Run(std::span<const Launch> launches, Deadline deadline) const;
  // Runs the launches one after another and waits for each; each may take `launch_time_max`. kTimeout: as Run.
  Error RunEach(std::span<const Launch> launches, std::chrono::duration<double> launch_time_max) const;
  // Runs the list `repeats` times without pauses and measures each repeat. The caller warms up before. kTimeout: as
  // Run.
  Error Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const;

 private:
  friend class Library;
  Error Wait(void* event, Deadline deadline) const;
  Error CheckRange(const Buffer& buffer, size_t offset, size_t bytes) const;

  std::shared_ptr<const Context> context_;
  DeviceInfo info_;
};

// NVIDIA's driver library.
class Library {
 public:
  // file: the argument of dlopen. kAbsent: the library is missing or too old. It stays loaded until the process ends.
  static Error Load(Library* library, const char* file = "libcuda.so.1");

  // All devices, in the driver's order. kAbsent: there are none.
  Error ListDevices(std::vector<DeviceInfo>* devices) const;
  // The device that `selector` names (choose_device.h). Find allocates nothing on it, so that it also works on a device
  // without free memory. Open creates its context and stream.
  Error Find(std::string_view selector, DeviceInfo* info) const;
  Error Open(std::string_view selector, Device* device) const;

 private:
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::cuda

#endif  // HONE_DRIVERS_CUDA_H_

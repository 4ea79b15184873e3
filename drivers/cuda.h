// SPDX-License-Identifier: Apache-2.0
// CUDA devices: found when the program runs, opened, given programs (PTX), memory and launches.
//
// The handles and calls of drivers/opencl.h: Library -> Device -> Program -> Kernel, and Buffer; also Graph. All own
// what they name, can be moved, and go in any order. One thread at a time for a Library: its current context stays.
#ifndef HONE_DRIVERS_CUDA_H_
#define HONE_DRIVERS_CUDA_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "drivers/error.h"

namespace hone::drivers::cuda {

struct Api;      // the library's functions; cuda_api.h
struct Context;  // of a device, with a stream; cuda.cc

struct DeviceInfo {
  std::string name;
  std::string architecture;    // "sm_87"
  std::string driver_version;  // the newest CUDA that it knows: "12.4"
  std::string pci_address;     // "0000:65:00.0", its name in other libraries of the driver
  int64_t compute_units = 0;
  int64_t max_group_lanes = 0;     // lanes of a group, for any kernel; one kernel's own limit may be lower
  int64_t preferred_multiple = 0;  // lanes that run in step
  int64_t local_bytes = 0;         // shared by the lanes of a group, at most
  int64_t global_bytes = 0;
  int64_t cache_bytes = 0;        // of global memory
  int64_t slice_alignment = 256;  // bytes; where a slice of a buffer may start
};

using Deadline = std::chrono::steady_clock::time_point;

class Buffer {
 public:
  Buffer() = default;
  size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  friend class Kernel;
  std::shared_ptr<void> memory_;
  uint64_t place_ = 0;  // on the device
  size_t bytes_ = 0;
};

// What the driver's compiler made of one kernel.
struct KernelFacts {
  int64_t max_group_lanes = 0;
  int64_t registers = 0;      // of one lane
  int64_t private_bytes = 0;  // of one lane; above 0 there are arrays or spilled registers
  int64_t local_bytes = 0;    // of one group
};

class Kernel {
 public:
  Kernel() = default;
  const KernelFacts& facts() const { return facts_; }
  // index: as the kernel declares its parameters, all of which a launch needs. Stays set until it is set again.
  Error SetArg(int index, const Buffer& buffer);
  // Bytes that each of its groups is given beside what the kernel has by itself. kProgram: more than the device has.
  Error SetShared(int64_t bytes);

 private:
  friend class Device;
  friend class Program;
  std::shared_ptr<const Context> context_;
  std::shared_ptr<void> module_;
  void* function_ = nullptr;
  int64_t shared_bytes_ = 0;
  std::string name_;
  bool waits_ = false;  // for the launch before it
  KernelFacts facts_;
  std::vector<Buffer> args_;
};

class Program {
 public:
  Program() = default;
  const std::string& log() const { return log_; }  // what the compiler said, although it succeeded
  bool from_cache() const { return from_cache_; }
  Error Find(const std::string& name, Kernel* kernel) const;

 private:
  friend class Device;
  std::shared_ptr<const Context> context_;
  std::vector<std::shared_ptr<void>> modules_;
  std::vector<std::tuple<std::string, size_t, bool>> entries_;  // a kernel, its parameters, whether it waits
  std::string log_;
  bool from_cache_ = false;
};

struct BuildOptions {
  std::string extra = {};                   // must be empty: PTX has no options
  std::filesystem::path cache_folder = {};  // where machine code is kept (binary_cache.h); empty: nowhere
};

// groups * lanes run the kernel, all of a group together. One may wait by itself until the launch before has ended.
struct Launch {
  const Kernel* kernel = nullptr;
  int64_t groups = 0, lanes = 0;
};

struct Timing {
  std::vector<double> device_seconds;  // per repeat, by the device's clock
  double wall_seconds = 0;             // of all repeats, by this machine's clock
};

// Memory of this process that the device reads and writes by itself.
class PinnedMemory {
 public:
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_.get()), bytes_}; }

 private:
  friend class Device;
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

// Work that was recorded. What it uses must live as long.
class Graph {
 public:
  bool defined() const { return graph_ != nullptr; }

 private:
  friend class Device;
  std::shared_ptr<void> graph_;
};

class Device {
 public:
  Device() = default;
  const DeviceInfo& info() const { return info_; }
  int number() const;  // its place in the driver's list

  // Loads machine code (base/code_kind.h), or compiles modules of PTX with different names. kProgram: its log.
  Error Build(std::string_view code, const BuildOptions& options, Program* program) const;
  Error Allocate(size_t bytes, Buffer* buffer) const;  // with arbitrary contents
  Error AllocatePinned(size_t bytes, PinnedMemory* memory) const;
  Buffer Adopt(void* memory, size_t bytes) const;  // of another, on this device, who keeps it while it is used
  // A part of `whole`, which it keeps alive; offset is a multiple of slice_alignment.
  Error Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const;

  // These only hand over, in order: memory of the caller stays as it is until Finish, also after an error.
  Error EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const;
  Error EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const;
  Error EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes) const;
  Error EnqueueLaunch(const Launch& launch) const;
  Error EnqueueGraph(const Graph& graph) const;
  Error Finish() const;  // waits until all that is done

  // What is handed over between the two is recorded, and not done. Memory of this process must be pinned.
  Error BeginGraph() const;
  Error EndGraph(Graph* graph) const;

  // These wait until it is done. offset and bytes must lie within the buffer.
  Error Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const;
  Error Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const;
  Error Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const;
  // Runs the launches in order and waits. kTimeout: the deadline passed; they go on until the process ends.
  Error Run(std::span<const Launch> launches, Deadline deadline) const;
  Error RunEach(std::span<const Launch> launches, std::chrono::duration<double> longest) const;
  // Runs the list `repeats` times, back to back. Untimed runs before it are the caller's.
  Error Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const;

 private:
  friend class Library;
  Error Wait(void* event, Deadline deadline) const;
  Error CheckRange(const Buffer& buffer, size_t offset, size_t bytes) const;

  std::shared_ptr<const Context> context_;
  DeviceInfo info_;
};

class Library {
 public:
  // file: as dlopen takes it. kAbsent: it is not on this machine, or too old. Stays loaded until the process ends.
  static Error Load(Library* library, const char* file = "libcuda.so.1");

  // All devices, in the driver's order. kAbsent: there are none.
  Error ListDevices(std::vector<DeviceInfo>* devices) const;
  // The device that selector means (choose_device.h). Find takes nothing of it, and so also finds one that is full.
  Error Find(std::string_view selector, DeviceInfo* info) const;
  Error Open(std::string_view selector, Device* device) const;

 private:
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::cuda

#endif  // HONE_DRIVERS_CUDA_H_

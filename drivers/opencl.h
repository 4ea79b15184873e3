// SPDX-License-Identifier: Apache-2.0
// The OpenCL driver: opens devices, compiles programs, allocates memory and launches kernels.
//
// Library -> Device -> Program -> Kernel, and Buffer. Each handle owns its object, can be moved, and may be destroyed
// in any order: what it needs lives as long as it does. A default-constructed handle is empty and may only be assigned
// to. One thread at a time may use a Library and all handles made from it. Start with Library::Load. Not here: what to
// compile and how to measure fairly.
#ifndef HONE_DRIVERS_OPENCL_H_
#define HONE_DRIVERS_OPENCL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/error.h"
#include "drivers/launch.h"

namespace hone::drivers::opencl {

struct Api;  // the functions of the library (opencl_api.h)

struct DeviceInfo {
  std::string platform, platform_version, name, vendor, driver_version;
  int number = 0;  // its index in the library's list
  bool is_cpu = false;
  int64_t compute_units = 0;
  int64_t group_lanes_max = 0;     // most lanes of a group; the limit of a particular kernel may be lower
  int64_t preferred_multiple = 0;  // group sizes should be multiples of it; 1 if the device does not report it
  int64_t local_bytes = 0;         // most shared memory of a group
  bool has_local_memory = false;   // false: shared memory is a part of global memory, and copies to it gain nothing
  int64_t global_bytes = 0, buffer_bytes_max = 0;  // size of the device's memory; most bytes of one buffer
  int64_t cache_bytes = 0;                         // size of the cache of global memory; 0: there is none
  int64_t slice_alignment = 1;                     // bytes; a slice of a buffer starts on a multiple of it
  bool caches_builds = false;           // the driver caches binaries on disk itself; Build then uses no cache_folder
  bool rounds_divide_and_sqrt = false;  // f32 / and sqrt can be correctly rounded; Build then requires it
};

// Memory of a device. Copies share the memory.
class Buffer {
 public:
  Buffer() = default;
  size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  friend class Kernel;
  std::shared_ptr<void> memory_;  // a cl_mem
  size_t bytes_ = 0;
};

// A kernel of a program with the arguments of its launches. Copies share the arguments. For other arguments, call
// Program::Find again.
class Kernel {
 public:
  Kernel() = default;
  int64_t group_lanes_max() const { return group_lanes_max_; }  // most lanes of a group that can run it
  // Sets parameter `index` of the kernel's declaration for all later launches, and keeps a buffer alive.
  Error SetArg(int index, const Buffer& buffer);
  Error SetArg(int index, float value);
  Error SetArg(int index, int32_t value);
  // The counterpart of CUDA's SetShared. An OpenCL kernel declares all of its shared memory: kProgram for more than 0
  // bytes.
  Error SetShared(int64_t bytes);

 private:
  friend class Device;
  friend class Program;
  Error SetArg(int index, size_t bytes, const void* value);
  std::shared_ptr<const Api> api_;
  std::shared_ptr<void> kernel_;  // a cl_kernel
  std::string name_;
  int64_t group_lanes_max_ = 0;
  std::vector<Buffer> args_;  // per parameter: the buffer that is set, to keep it alive
};

// A built program.
class Program {
 public:
  Program() = default;
  const std::string& log() const { return log_; }  // the compiler's warnings
  bool from_cache() const { return from_cache_; }  // whether the binary came from BuildOptions::cache_folder
  // kProgram: there is no kernel of that name.
  Error Find(const std::string& name, Kernel* kernel) const;

 private:
  friend class Device;
  std::shared_ptr<const Api> api_;
  std::shared_ptr<void> program_;  // a cl_program
  void* device_ = nullptr;         // a cl_device_id, which the library never frees
  std::string log_;
  bool from_cache_ = false;
};

using Launch = LaunchOf<Kernel>;

// An open device with one queue, on which all work is done in order.
class Device {
 public:
  Device() = default;
  const DeviceInfo& info() const { return info_; }

  // Compiles OpenCL C 1.2, with correctly rounded f32 / and sqrt if the device supports it. kProgram: the compiler
  // rejects it, and the text has its log.
  Error Build(std::string_view source, const BuildOptions& options, Program* program) const;
  // The contents are arbitrary. 0 bytes are allowed. kMemory: there is not enough.
  Error Allocate(size_t bytes, Buffer* buffer) const;
  // A part of `whole`, whose memory it keeps alive. offset: bytes, a multiple of slice_alignment. A slice of 0 bytes
  // takes 1 byte of `whole`. Slices may overlap. kProgram: another offset, or the part does not lie within `whole`.
  Error Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const;

  // The next functions enqueue work and return. The caller's memory must stay valid and unchanged until Finish has
  // returned, also after an error. Write and Read begin at the buffer's start.
  Error EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const;
  Error EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const;
  // offset: bytes into `to`.
  Error EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes, size_t offset = 0) const;
  Error EnqueueLaunch(const Launch& launch) const { return Enqueue(launch, nullptr); }
  // Waits until all enqueued work has ended. Returns the error of work that failed.
  Error Finish() const;

  // The next functions wait until their work has ended. offset and bytes must lie within the buffer, else kProgram.
  Error Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const;
  Error Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const;
  Error Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const;
  // Runs the launches in order, so that each sees the writes of those before it, and waits. kTimeout: they had not
  // ended by the deadline. They keep running, and only the end of this process stops them.
  Error Run(std::span<const Launch> launches, Deadline deadline) const;
  // Runs the launches one after another and waits for each; each may take `launch_time_max` from the moment when the
  // device starts it. Compilation at the first launch (PoCL does it) happens before that moment and is not limited.
  // kTimeout: as Run.
  Error RunEach(std::span<const Launch> launches, std::chrono::duration<double> launch_time_max) const;
  // Runs the list `repeats` times without pauses and measures each repeat. The caller warms up before. kTimeout: as
  // Run.
  Error Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const;

 private:
  friend class Library;
  // event: null, or receives the event of the launch.
  Error Enqueue(const Launch& launch, std::shared_ptr<void>* event) const;
  enum class Until { kBegun, kDone };
  Error Wait(void* event, Until until, Deadline deadline) const;

  std::shared_ptr<const Api> api_;
  void* device_ = nullptr;         // a cl_device_id
  std::shared_ptr<void> context_;  // a cl_context
  std::shared_ptr<void> queue_;    // a cl_command_queue: in order, with profiling
  DeviceInfo info_;
};

// The OpenCL library of this machine, usually a loader of vendors' drivers.
class Library {
 public:
  // file: the argument of dlopen. kAbsent: the library is missing or is not OpenCL 1.2. It stays loaded until the
  // process ends, because drivers leave threads running.
  static Error Load(Library* library, const char* file = "libOpenCL.so.1");

  // All devices of all platforms, in the library's order. kAbsent: there are none.
  Error ListDevices(std::vector<DeviceInfo>* devices) const;
  // The device that `selector` names (choose_device.h). Find allocates nothing on it, so that it also works on a device
  // without free memory. Open creates its context and queue.
  Error Find(std::string_view selector, DeviceInfo* info) const;
  Error Open(std::string_view selector, Device* device) const;

 private:
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::opencl

#endif  // HONE_DRIVERS_OPENCL_H_

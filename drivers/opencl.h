// SPDX-License-Identifier: Apache-2.0
// OpenCL devices: found when the program runs, opened, given programs, memory and launches.
//
// Library -> Device -> Program -> Kernel, and Buffer. All are handles that own what they name, can be moved, and may go
// in any order: what a handle needs lives as long as it does. A default-constructed handle is empty; only assigning to
// it makes sense. Not here: what to compile and how to measure fairly. One thread at a time for everything of one
// Library.
#ifndef HONE_DRIVERS_OPENCL_H_
#define HONE_DRIVERS_OPENCL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/error.h"

namespace hone::drivers::opencl {

struct Api;  // the library's functions; opencl_api.h

struct DeviceInfo {
  std::string platform, platform_version, name, vendor, driver_version;
  std::string c_version;  // of the OpenCL C that its compiler speaks: "OpenCL C 1.2 ..."
  int number = 0;         // its place in the library's list
  bool is_cpu = false;
  int64_t compute_units = 0;
  int64_t max_group_lanes = 0;     // lanes of a group, for any kernel; one kernel's own limit may be lower
  int64_t preferred_multiple = 0;  // group sizes should be a multiple; 1 where the device does not say
  int64_t local_bytes = 0;         // shared by the lanes of a group
  bool has_local_memory = false;   // else it is a part of global memory, and copying to it gains nothing
  int64_t global_bytes = 0, max_buffer_bytes = 0;
  int64_t cache_bytes = 0;      // of global memory; 0 for none
  int64_t slice_alignment = 1;  // bytes; where a slice of a buffer may start
  bool has_f64 = false;
  bool keeps_builds = false;            // the driver does, on disk: Build then uses no cache_folder
  bool rounds_divide_and_sqrt = false;  // single precision / and sqrt can be rounded correctly; Build asks for it
};

using Deadline = std::chrono::steady_clock::time_point;

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

// What the device's compiler made of one kernel.
struct KernelFacts {
  int64_t max_group_lanes = 0, preferred_multiple = 0;
  int64_t private_bytes = 0;  // of one lane; above 0 there are arrays or spilled registers
  int64_t local_bytes = 0;    // of one group
};

class Kernel {
 public:
  Kernel() = default;
  const KernelFacts& facts() const { return facts_; }
  // index: as the kernel declares its parameters. Stays set until it is set again.
  Error SetArg(int index, const Buffer& buffer);
  Error SetArg(int index, float value);
  Error SetArg(int index, int32_t value);
  // As CUDA's: here a kernel has all by itself. kProgram for more than 0 bytes.
  Error SetShared(int64_t bytes);

 private:
  friend class Device;
  friend class Program;
  Error SetArg(int index, size_t bytes, const void* value);
  std::shared_ptr<const Api> api_;
  std::shared_ptr<void> kernel_;  // a cl_kernel
  std::string name_;
  KernelFacts facts_;
  std::vector<Buffer> args_;  // keeps them alive
};

class Program {
 public:
  Program() = default;
  const std::string& log() const { return log_; }  // what the compiler said, although it succeeded
  bool from_cache() const { return from_cache_; }
  Error Find(const std::string& name, Kernel* kernel) const;

 private:
  friend class Device;
  std::shared_ptr<const Api> api_;
  std::shared_ptr<void> program_;  // a cl_program
  void* device_ = nullptr;         // a cl_device_id; these are never freed
  std::string log_;
  bool from_cache_ = false;
};

struct BuildOptions {
  std::string extra;  // further options, after those that Build sets
  // Where binaries are kept (binary_cache.h), unless the driver itself keeps what it has built; empty: nowhere.
  std::filesystem::path cache_folder;
};

// groups * lanes run the kernel, all lanes of a group together.
struct Launch {
  const Kernel* kernel = nullptr;
  int64_t groups = 0, lanes = 0;
};

struct Timing {
  std::vector<double>
      device_seconds;       // per repeat, by the device's clock: beginning of the first launch to end of the last
  double wall_seconds = 0;  // of all repeats, by this machine's clock: first launch handed over to all done
};

class Device {
 public:
  Device() = default;
  const DeviceInfo& info() const { return info_; }

  // Compiles OpenCL C 1.2 with correctly rounded / and sqrt where the device can. kProgram: the compiler's log.
  Error Build(std::string_view source, const BuildOptions& options, Program* program) const;
  // With arbitrary contents.
  Error Allocate(size_t bytes, Buffer* buffer) const;
  // A part of `whole`, which it keeps alive; offset is a multiple of slice_alignment; at least 1 byte is taken.
  // Slices may overlap.
  Error Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const;

  // These only hand over, in order with everything else on this device: memory of the caller stays as it is until
  // Finish, also after an error. Write and Read begin at the buffer's start.
  Error EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const;
  Error EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const;
  Error EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes) const;
  Error EnqueueLaunch(const Launch& launch) const { return Enqueue(launch, nullptr); }
  Error Finish() const;  // waits until all that is done

  // These wait until it is done. offset and bytes must lie within the buffer.
  Error Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const;
  Error Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const;
  Error Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const;
  // Runs the launches in order, each seeing what those before it wrote, and waits. kTimeout: the deadline passed first.
  // What was launched goes on then, and nothing can stop it but the end of this process.
  Error Run(std::span<const Launch> launches, Deadline deadline) const;
  // As Run, but each launch may take `longest` from when the device begins with it: what a driver compiles at the first
  // launch (PoCL does) is done by then.
  Error RunEach(std::span<const Launch> launches, std::chrono::duration<double> longest) const;
  // Runs the list `repeats` times, back to back. Untimed runs before it are the caller's.
  Error Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const;

 private:
  friend class Library;
  Error Enqueue(const Launch& launch, std::shared_ptr<void>* event) const;
  enum class Until { kBegun, kDone };
  Error Wait(void* event, Until until, Deadline deadline) const;

  std::shared_ptr<const Api> api_;
  void* device_ = nullptr;         // a cl_device_id
  std::shared_ptr<void> context_;  // a cl_context
  std::shared_ptr<void> queue_;    // a cl_command_queue, in order, with profiling
  DeviceInfo info_;
};

class Library {
 public:
  // file: as dlopen takes it. kAbsent: it is not on this machine, or is not OpenCL 1.2. Stays loaded until the end of
  // the process: drivers leave threads behind.
  static Error Load(Library* library, const char* file = "libOpenCL.so.1");

  // All devices of all platforms, in the library's order. kAbsent: there are none.
  Error ListDevices(std::vector<DeviceInfo>* devices) const;
  // The device that selector means (choose_device.h). Find takes nothing of it, and so also finds one that is full.
  Error Find(std::string_view selector, DeviceInfo* info) const;
  Error Open(std::string_view selector, Device* device) const;

 private:
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::opencl

#endif  // HONE_DRIVERS_OPENCL_H_

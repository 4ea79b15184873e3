// SPDX-License-Identifier: Apache-2.0
// The back end of devices with lanes: the device's driver compiles the code, and kernels work in the device's memory.
//
// A template over the drivers of drivers/lane_drivers.h; opencl_backend.cc and cuda_backend.cc instantiate it, and only
// they include this file. Compiled code is cached on disk (cache_folder.h), unless the driver has its own cache. A run
// enqueues inputs, launches, copies and outputs in this order and waits once at the end of the home's last segment.
// Open sizes are in one buffer, which is written when they change. Start with Load and Run.
#ifndef HONE_DEPLOY_RUNTIME_LANE_BACKEND_H_
#define HONE_DEPLOY_RUNTIME_LANE_BACKEND_H_

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/backends.h"
#include "deploy/runtime/cache_folder.h"
#include "deploy/runtime/driver_fault.h"
#include "deploy/runtime/kernel_sizes.h"
#include "deploy/runtime/lane_call.h"
#include "drivers/lane_drivers.h"

namespace hone::runtime {

// Driver: a struct of drivers/lane_drivers.h.
template <typename Driver>
class LaneBackend : public Backend {
 public:
  using Error = drivers::Error;
  using Library = Driver::Library;
  using Device = Driver::Device;
  using Buffer = Driver::Buffer;
  using Kernel = Driver::Kernel;
  using Launch = Driver::Launch;
  using Program = Driver::Program;
  using Timing = drivers::Timing;
  using TensorEntry = package::TensorEntry;
  using TensorKind = package::TensorKind;

  LaneBackend(const ProgramView& program, uint32_t home)
      : program_(program),
        home_(program.homes[home]),
        unit_(program.units[home_.units.front()]),
        uses_(program.tensors.size()),
        kernel_sizes_(program, home),
        ports_(program.tensors.size(), nullptr) {}

  // Opens the device, builds the code, and copies the constants to the device. Once, before any other call.
  Fault Load(std::span<const uint8_t> constants, const BackendOptions& options) {
    Library library;
    HONE_RETURN_IF_FAULT(ToFault(Library::Load(&library)));
    HONE_RETURN_IF_FAULT(ToFault(library.Open(DeviceSelector(options, program_.Text(unit_.entry.device)), &device_)));
    HONE_RETURN_IF_FAULT(CheckRequirements());
    Program built;
    const std::string_view source(reinterpret_cast<const char*>(unit_.code.data()), unit_.code.size());
    HONE_RETURN_IF_FAULT(ToFault(device_.Build(source, {.cache_folder = CacheFolder()}, &built)));
    HONE_RETURN_IF_FAULT(ToFault(PlaceTensors(constants)));
    if (const size_t bytes = kernel_sizes_.contents().size_bytes(); bytes > 0) {
      HONE_RETURN_IF_FAULT(ToFault(device_.Allocate(bytes, &size_memory_)));
    }
    calls_.reserve(program_.calls.size());
    for (const package::CallEntry& call : program_.calls) HONE_RETURN_IF_FAULT(AddCall(call, built));
    return {};
  }

  void SetPortMemory(uint32_t tensor, uint8_t* host) override { ports_[tensor] = host; }

  Fault SetSizes(const SizeValues& sizes) override {
    sizes_ = &sizes;
    return {};
  }

  Fault Run(const Segment& segment, std::span<int64_t> nanoseconds) override {
    Error enqueued = MayHaveNewSizes(segment) ? UpdateSizes() : Error();
    if (enqueued.ok()) enqueued = Enqueue(segment, nanoseconds);
    if (enqueued.ok() && !segment.ends) return {};
    const Error done = device_.Finish();  // also after an error: enqueued copies may still use the ports' memory
    return ToRunFault(enqueued.ok() ? done : enqueued);
  }

  Fault Wait() override { return ToRunFault(device_.Finish()); }

  uint8_t* HostMemory(uint32_t) override { return nullptr; }
  Fault Read(uint32_t tensor, uint8_t* host) override {
    return ToRunFault(device_.Read(memory_[tensor], 0, std::as_writable_bytes(std::span(host, Bytes(tensor)))));
  }
  Fault Write(uint32_t tensor, const uint8_t* host) override {
    return ToRunFault(device_.Write(memory_[tensor], 0, std::as_bytes(std::span(host, Bytes(tensor)))));
  }

  Fault CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes) override {
    return ToRunFault(device_.EnqueueCopy(memory_[source], memory_[target], bytes, offset));
  }
  Fault ReadBytes(uint32_t tensor, std::span<uint8_t> to) override {
    return ToRunFault(device_.Read(memory_[tensor], 0, std::as_writable_bytes(to)));
  }
  Fault WriteBytes(uint32_t tensor, uint64_t offset, std::span<const uint8_t> from) override {
    return ToRunFault(device_.Write(memory_[tensor], offset, std::as_bytes(from)));
  }
  // Launches that are enqueued already keep their arguments.
  Fault SwapMemory(uint32_t a, uint32_t b) override {
    std::swap(memory_[a], memory_[b]);
    for (const uint32_t tensor : {a, b}) {
      for (const LaneUse& use : uses_[tensor]) {
        HONE_RETURN_IF_FAULT(ToRunFault(calls_[use.call].kernels[use.kernel].SetArg(use.argument, memory_[tensor])));
      }
    }
    return {};
  }

  void SetThreads(int) override {}
  int threads() const override { return 1; }

 private:
  using Call = LaneCall<Driver>;

  // Incompatible if the device has fewer lanes or less shared memory than the program needs.
  Fault CheckRequirements() const {
    const auto check = [&](int64_t needed, int64_t has, const char* what) {
      return CheckRequirement(needed, has, what, Driver::kName, device_.info().name, Driver::kTarget);
    };
    HONE_RETURN_IF_FAULT(check(unit_.entry.lanes, device_.info().group_lanes_max, "lanes in a group"));
    return check(static_cast<int64_t>(unit_.entry.shared_bytes), device_.info().local_bytes, "bytes of shared memory");
  }

  // Allocates the device memory of the home's tensors and copies the constants to it. The arena is one buffer, because
  // its tensors share memory. Each input, output and constant has its own buffer: a device limits the size of a buffer,
  // and the package's constants include those of other programs and homes.
  Error PlaceTensors(std::span<const uint8_t> constants) {
    const uint64_t arena_bytes = home_.arena_bytes;
    Error error = arena_bytes == 0 ? Error() : device_.Allocate(arena_bytes, &arena_);
    std::map<std::pair<uint64_t, uint64_t>, Buffer> placed;  // constants, by offset and size
    memory_.resize(program_.tensors.size());
    for (size_t i = 0; i < memory_.size() && error.ok(); ++i) {
      const TensorEntry& tensor = program_.tensors[i];
      if (tensor.kind == TensorKind::kIntermediate && &program_.homes[tensor.home] == &home_) {
        error = ArenaSlice(tensor.offset, tensor.bytes, &memory_[i]);
      }
    }
    for (const std::vector<uint32_t>* ports : {&home_.inputs, &home_.outputs}) {
      for (const uint32_t id : *ports) {
        if (error.ok()) error = device_.Allocate(program_.tensors[id].bytes, &memory_[id]);
      }
    }
    for (const uint32_t id : home_.constants) {
      const TensorEntry& tensor = program_.tensors[id];
      Buffer& buffer = placed[{tensor.offset, tensor.bytes}];
      const bool is_new = buffer.bytes() == 0;
      if (error.ok() && is_new) error = device_.Allocate(tensor.bytes, &buffer);
      memory_[id] = buffer;
      if (!error.ok() || !is_new) continue;
      error = device_.EnqueueWrite(buffer, std::as_bytes(constants.subspan(tensor.offset, tensor.bytes)));
    }
    const Error written = device_.Finish();
    return error.ok() ? written : error;
  }

  // A slice of the arena. Without bytes it is a buffer of its own, because there may be no arena.
  Error ArenaSlice(uint64_t offset, uint64_t bytes, Buffer* slice) const {
    return bytes == 0 ? device_.Allocate(0, slice) : device_.Slice(arena_, offset, bytes, slice);
  }

  // Appends a call with the kernels, arguments and launches of its `main`.
  Fault AddCall(const package::CallEntry& entry, const Program& built) {
    const KernelInterface& interface = program_.Kernel(entry);
    const std::span<const uint32_t> arguments = program_.Arguments(entry);
    Call call;
    if (&program_.homes[program_.Home(entry)] != &home_) {
      calls_.emplace_back();
      return {};
    }
    if (const size_t count = interface.size_count(); count > 0) {
      call.interface = &interface;
      call.sizes = kernel_sizes_.contents().subspan(kernel_sizes_.OffsetOf(entry) / sizeof(int64_t), count);
      call.values.resize(count + interface.size_steps.size());
    }
    call.kernels.resize(interface.main.size());
    for (size_t i = 0; i < interface.main.size(); ++i) {
      const KernelLaunch& launch = interface.main[i];
      Kernel& kernel = call.kernels[i];
      HONE_RETURN_IF_FAULT(ToFault(built.Find(launch.function, &kernel)));
      if (launch.lanes > kernel.group_lanes_max()) {
        return Incompatible("kernel '" + launch.function + "' runs " + std::to_string(launch.lanes) +
                            " lanes in a group, the " + Driver::kName + " device '" + device_.info().name +
                            "' can run " + std::to_string(kernel.group_lanes_max()) + " of it");
      }
      HONE_RETURN_IF_FAULT(ToFault(kernel.SetShared(launch.shared_bytes)));
      for (size_t a = 0; a < launch.arguments.size(); ++a) {
        const KernelBuffer& buffer = interface.buffers[launch.arguments[a]];
        Buffer slice;
        if (buffer.role == BufferRole::kWorkspace) {
          const uint64_t offset = entry.workspace_offset + static_cast<uint64_t>(buffer.offset);
          HONE_RETURN_IF_FAULT(ToFault(ArenaSlice(offset, static_cast<uint64_t>(buffer.bytes()), &slice)));
        } else if (buffer.role == BufferRole::kSizes) {
          const auto bytes = static_cast<uint64_t>(buffer.bytes());
          HONE_RETURN_IF_FAULT(ToFault(device_.Slice(size_memory_, kernel_sizes_.OffsetOf(entry), bytes, &slice)));
        } else {
          const uint32_t tensor = arguments[launch.arguments[a]];
          slice = memory_[tensor];
          if (HasActions()) uses_[tensor].push_back({calls_.size(), i, static_cast<int>(a)});
        }
        HONE_RETURN_IF_FAULT(ToFault(kernel.SetArg(static_cast<int>(a), slice)));
      }
    }
    Call& kept = calls_.emplace_back(std::move(call));
    for (size_t i = 0; i < kept.kernels.size(); ++i) {
      kept.launches.push_back({&kept.kernels[i], interface.main[i].groups, interface.main[i].lanes});
    }
    return {};
  }

  // The memory of an input or output in this process.
  std::span<std::byte> Host(uint32_t port) const {
    return std::as_writable_bytes(std::span(ports_[port], Bytes(port)));
  }

  // Enqueues the launches of a call.
  Error Enqueue(const Call& call) const {
    for (const Launch& launch : call.launches) {
      if (Error error = device_.EnqueueLaunch(launch); !error.ok()) return error;
    }
    return {};
  }

  // Runs a call alone and measures it by the device's clock: waits for the work before it, and for the call itself.
  // Adds nothing to *nanoseconds if the call has no launches.
  Error Time(const Call& call, int64_t* nanoseconds) const {
    if (Error error = device_.Finish(); !error.ok()) return error;
    Timing timing;
    constexpr auto kNever = drivers::Deadline::max();
    if (Error error = device_.Time(call.launches, 1, kNever, &timing); !error.ok()) return error;
    *nanoseconds += timing.device_seconds.empty() ? 0 : std::llround(1e9 * timing.device_seconds[0]);
    return {};
  }

 protected:
  // Whether actions change sizes and swap memory during a run.
  bool HasActions() const { return !program_.actions.empty(); }
  bool MayHaveNewSizes(const Segment& segment) const { return segment.begins || HasActions(); }

  // Hands new sizes to the device, and gives every launch as many groups as they need. Allocates nothing.
  Error UpdateSizes() {
    new_sizes_ = kernel_sizes_.AreOld(*sizes_);
    if (!new_sizes_) return {};
    if (HasActions()) {  // the sizes from before may still be on their way to the device
      if (Error error = device_.Finish(); !error.ok()) return error;
    }
    kernel_sizes_.Update(*sizes_);
    for (Call& call : calls_) call.UpdateLaunches();
    return device_.EnqueueWrite(size_memory_, std::as_bytes(kernel_sizes_.contents()));
  }

  // Enqueues a segment in order without waiting: inputs, calls, copies, outputs. nanoseconds: empty, or one element per
  // call; then each call is waited for and timed. Ports without memory in this process (ports_) are left out.
  Error Enqueue(const Segment& segment, std::span<int64_t> nanoseconds) const {
    Error error;
    if (segment.begins) {
      for (const uint32_t id : home_.inputs) {
        if (error.ok() && ports_[id] != nullptr) error = device_.EnqueueWrite(memory_[id], Host(id));
      }
    }
    for (uint32_t i = segment.first; i < segment.end && error.ok(); ++i) {
      error = nanoseconds.empty() ? Enqueue(calls_[i]) : Time(calls_[i], &nanoseconds[i]);
    }
    if (!segment.ends) return error;
    for (const package::CopyEntry& copy : home_.copies) {
      if (error.ok()) error = device_.EnqueueCopy(memory_[copy.source], memory_[copy.target], Bytes(copy.target));
    }
    for (const uint32_t id : home_.outputs) {
      if (error.ok() && ports_[id] != nullptr) error = device_.EnqueueRead(memory_[id], Host(id));
    }
    return error;
  }

  // The bytes of a tensor at the current sizes.
  uint64_t Bytes(uint32_t tensor) const { return sizes_->Bytes(tensor); }
  // Whether this run is the first one at its sizes. False for a program without open sizes.
  bool HasNewSizes() const { return new_sizes_; }
  // The device memory of a tensor.
  const Buffer& Memory(uint32_t tensor) const { return memory_[tensor]; }
  const ProgramView& program_;
  const HomeView& home_;
  const UnitView& unit_;  // the only one of the home
  Device device_;

 private:
  Buffer arena_;
  std::vector<Buffer> memory_;  // per tensor: its device memory; empty if another home has it
  std::vector<Call> calls_;  // per call of the program; empty for those of other homes. Reserved before it is filled,
                             // because a call's launches point to its kernels
  std::vector<std::vector<LaneUse>> uses_;  // per tensor; empty for a program without actions
  const SizeValues* sizes_ = nullptr;       // set before the first run
  bool new_sizes_ = false;
  KernelSizes kernel_sizes_;
  Buffer size_memory_;           // the contents of kernel_sizes_
  std::vector<uint8_t*> ports_;  // per tensor: the memory in this process of an input or output; null: none to copy
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_LANE_BACKEND_H_

// SPDX-License-Identifier: Apache-2.0
// The back end of devices with lanes: the code is compiled by the device's driver, kernels run in the device's memory.
//
// Written once for all drivers that have the handles and calls of drivers/opencl.h; a file per driver names them.
// Private to those files. Compiled code is kept in the user's cache (cache_folder.h), unless the driver does that. A
// run hands everything over in order (inputs, launches, copies, outputs) and waits once.
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
#include "drivers/lane_drivers.h"

namespace hone::runtime {

// Driver: of drivers/lane_drivers.h.
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
  using Timing = Driver::Timing;
  using TensorEntry = package::TensorEntry;
  using TensorKind = package::TensorKind;

  explicit LaneBackend(const ProgramView& program) : program_(program), ports_(program.tensors.size(), nullptr) {}

  Fault Load(std::span<const uint8_t> constants) {
    Library library;
    HONE_RETURN_IF_FAULT(ToFault(Library::Load(&library)));
    HONE_RETURN_IF_FAULT(ToFault(library.Open(program_.Text(program_.manifest->device), &device_)));
    HONE_RETURN_IF_FAULT(CheckNeeds());
    Program built;
    const std::string_view source(reinterpret_cast<const char*>(program_.code.data()), program_.code.size());
    HONE_RETURN_IF_FAULT(ToFault(device_.Build(source, {.cache_folder = CacheFolder()}, &built)));
    HONE_RETURN_IF_FAULT(ToFault(PlaceTensors(constants)));
    calls_.reserve(program_.calls.size());
    for (const package::CallEntry& call : program_.calls) HONE_RETURN_IF_FAULT(AddCall(call, built));
    return {};
  }

  void PlacePort(uint32_t tensor, uint8_t* host) override { ports_[tensor] = host; }

  Fault Run(std::span<int64_t> nanoseconds) override {
    const Error handed_over = HandOver(nanoseconds);
    const Error done = device_.Finish();  // also after an error: the queue may still hold the ports' addresses
    return ToRunFault(handed_over.ok() ? done : handed_over);
  }

  void SetThreads(int) override {}
  int threads() const override { return 1; }

 private:
  struct Call {  // with its arguments set once and for all
    std::vector<Kernel> kernels;
    std::vector<Launch> launches;  // of kernels
  };

  Fault CheckNeeds() const {
    const auto check = [&](int64_t needed, int64_t has, const char* what) {
      return CheckNeed(needed, has, what, Driver::kName, device_.info().name, Driver::kTarget);
    };
    HONE_RETURN_IF_FAULT(check(program_.manifest->lanes, device_.info().max_group_lanes, "lanes in a group"));
    return check(static_cast<int64_t>(program_.manifest->shared_bytes), device_.info().local_bytes,
                 "bytes of shared memory");
  }

  // The arena is one buffer, because its tensors share memory. Inputs, outputs and constants have buffers of their own:
  // a device limits the size of one buffer, and the package holds constants of other programs too.
  Error PlaceTensors(std::span<const uint8_t> constants) {
    const uint64_t arena_bytes = program_.manifest->arena_bytes;
    Error error = arena_bytes == 0 ? Error() : device_.Allocate(arena_bytes, &arena_);
    std::map<std::pair<uint64_t, uint64_t>, Buffer> placed;  // constants, by offset and size
    memory_.resize(program_.tensors.size());
    for (size_t i = 0; i < memory_.size() && error.ok(); ++i) {
      const TensorEntry& tensor = program_.tensors[i];
      if (tensor.kind == TensorKind::kIntermediate) {
        error = ArenaSlice(tensor.offset, tensor.bytes, &memory_[i]);
        continue;
      }
      const bool constant = tensor.kind == TensorKind::kConstant;
      const auto found = constant ? placed.find({tensor.offset, tensor.bytes}) : placed.end();
      if (found != placed.end()) {
        memory_[i] = found->second;
        continue;
      }
      error = device_.Allocate(tensor.bytes, &memory_[i]);
      if (!constant || !error.ok()) continue;
      placed[{tensor.offset, tensor.bytes}] = memory_[i];
      error = device_.EnqueueWrite(memory_[i], std::as_bytes(constants.subspan(tensor.offset, tensor.bytes)));
    }
    const Error written = device_.Finish();
    return error.ok() ? written : error;
  }

  Error ArenaSlice(uint64_t offset, uint64_t bytes, Buffer* slice) const {
    return bytes == 0 ? device_.Allocate(0, slice) : device_.Slice(arena_, offset, bytes, slice);
  }

  Fault AddCall(const package::CallEntry& entry, const Program& built) {
    const KernelInterface& interface = program_.Kernel(entry);
    const std::span<const uint32_t> arguments = program_.Arguments(entry);
    Call call;
    call.kernels.resize(interface.main.size());
    for (size_t i = 0; i < interface.main.size(); ++i) {
      const KernelLaunch& launch = interface.main[i];
      Kernel& kernel = call.kernels[i];
      HONE_RETURN_IF_FAULT(ToFault(built.Find(launch.function, &kernel)));
      if (launch.lanes > kernel.facts().max_group_lanes) {
        return Incompatible("kernel '" + launch.function + "' runs " + std::to_string(launch.lanes) +
                            " lanes in a group, the " + Driver::kName + " device '" + device_.info().name +
                            "' can run " + std::to_string(kernel.facts().max_group_lanes) + " of it");
      }
      HONE_RETURN_IF_FAULT(ToFault(kernel.SetShared(launch.shared_bytes)));
      for (size_t a = 0; a < launch.arguments.size(); ++a) {
        const KernelBuffer& buffer = interface.buffers[launch.arguments[a]];
        Buffer slice;
        if (buffer.role == BufferRole::kWorkspace) {
          const uint64_t offset = entry.workspace_offset + static_cast<uint64_t>(buffer.offset);
          HONE_RETURN_IF_FAULT(ToFault(ArenaSlice(offset, static_cast<uint64_t>(buffer.bytes()), &slice)));
        } else {
          slice = memory_[arguments[launch.arguments[a]]];
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

  std::span<std::byte> Host(uint32_t port) const {
    return std::as_writable_bytes(std::span(ports_[port], program_.tensors[port].bytes));
  }

  Error HandOver(const Call& call) const {
    for (const Launch& launch : call.launches) {
      if (Error error = device_.EnqueueLaunch(launch); !error.ok()) return error;
    }
    return {};
  }

  // By the device's clock, alone: waits for what is before it, and for it. 0 where there is nothing to launch.
  Error Time(const Call& call, int64_t* nanoseconds) const {
    if (Error error = device_.Finish(); !error.ok()) return error;
    Timing timing;
    constexpr auto kNever = drivers::Deadline::max();
    if (Error error = device_.Time(call.launches, 1, kNever, &timing); !error.ok()) return error;
    *nanoseconds = timing.device_seconds.empty() ? 0 : std::llround(1e9 * timing.device_seconds[0]);
    return {};
  }

 protected:
  // In order, without waiting.
  Error HandOver(std::span<int64_t> nanoseconds) const {
    Error error;
    for (const uint32_t id : program_.inputs) {
      if (error.ok() && ports_[id] != nullptr) error = device_.EnqueueWrite(memory_[id], Host(id));
    }
    for (size_t i = 0; i < calls_.size() && error.ok(); ++i) {
      error = nanoseconds.empty() ? HandOver(calls_[i]) : Time(calls_[i], &nanoseconds[i]);
    }
    for (const package::CopyEntry& copy : program_.copies) {
      const uint64_t bytes = program_.tensors[copy.target].bytes;
      if (error.ok()) error = device_.EnqueueCopy(memory_[copy.source], memory_[copy.target], bytes);
    }
    for (const uint32_t id : program_.outputs) {
      if (error.ok() && ports_[id] != nullptr) error = device_.EnqueueRead(memory_[id], Host(id));
    }
    return error;
  }

  const Buffer& Memory(uint32_t tensor) const { return memory_[tensor]; }  // on the device
  const ProgramView& program_;
  Device device_;

 private:
  Buffer arena_;
  std::vector<Buffer> memory_;   // per tensor, on the device
  std::vector<Call> calls_;      // their places in memory do not change: launches point to kernels
  std::vector<uint8_t*> ports_;  // per tensor, in this process; of inputs and outputs that are there
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_LANE_BACKEND_H_

// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/fake_device.h"

#include <cstring>
#include <memory>
#include <utility>

#include "base/status.h"

namespace hone::tests {
namespace {

using package::TensorEntry;
using package::TensorKind;
using runtime::Fault;
using runtime::ProgramView;

class FakeBackend : public runtime::Backend {
 public:
  FakeBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants, FakeDevice* device)
      : program_(program),
        home_(program.homes[home]),
        device_(*device),
        constants_(constants.begin(), constants.end()),
        arena_(home_.arena_bytes, 0xee),
        io_(program.io_bytes, 0xee),
        ports_(program.tensors.size(), nullptr) {
    ++device_.uploads_of_constants;
  }

  void SetPortMemory(uint32_t tensor, uint8_t* host) override { ports_[tensor] = host; }
  Fault SetSizes(const runtime::SizeValues& sizes) override {
    const bool changes_launches = sizes.IsOpen() && program_.actions.empty();  // its kernels take no sizes
    return changes_launches ? runtime::Incompatible("the fake device takes no open sizes") : Fault{};
  }

  Fault Run(const runtime::Segment& segment, std::span<int64_t> nanoseconds) override {
    if (!device_.failure.empty()) return runtime::IoError(device_.failure);
    if (segment.begins) {
      for (const uint32_t id : home_.inputs) std::memcpy(Memory(id), ports_[id], program_.tensors[id].bytes);
    }
    for (size_t i = segment.first; i < segment.end; ++i) {
      const package::CallEntry& call = program_.calls[i];
      for (const KernelLaunch& launch : program_.Kernel(call).main) Launch(call, launch);
      if (!nanoseconds.empty()) nanoseconds[i] = static_cast<int64_t>(100 + i);
    }
    if (!segment.ends) return {};
    for (const package::CopyEntry& copy : home_.copies) {
      std::memcpy(Memory(copy.target), Memory(copy.source), program_.tensors[copy.target].bytes);
    }
    for (const uint32_t id : home_.outputs) std::memcpy(ports_[id], Memory(id), program_.tensors[id].bytes);
    return {};
  }

  Fault Wait() override {
    ++device_.waits;
    return {};
  }
  uint8_t* HostMemory(uint32_t) override { return nullptr; }
  Fault Read(uint32_t tensor, uint8_t* host) override {
    ++device_.reads;
    std::memcpy(host, Memory(tensor), program_.tensors[tensor].bytes);
    return {};
  }
  Fault Write(uint32_t tensor, const uint8_t* host) override {
    ++device_.writes;
    std::memcpy(Memory(tensor), host, program_.tensors[tensor].bytes);
    return {};
  }
  Fault CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes) override {
    std::memcpy(Memory(target) + offset, Memory(source), bytes);
    return {};
  }
  Fault ReadBytes(uint32_t tensor, std::span<uint8_t> to) override {
    std::memcpy(to.data(), Memory(tensor), to.size());
    return {};
  }
  Fault WriteBytes(uint32_t tensor, uint64_t offset, std::span<const uint8_t> from) override {
    ++device_.writes;
    std::memcpy(Memory(tensor) + offset, from.data(), from.size());
    return {};
  }
  Fault SwapMemory(uint32_t, uint32_t) override { return runtime::Incompatible("the fake device swaps no memory"); }

  void SetThreads(int) override {}
  int threads() const override { return 1; }

 private:
  uint8_t* Memory(uint32_t id) {
    const TensorEntry& tensor = program_.tensors[id];
    if (tensor.kind == TensorKind::kConstant) return constants_.data() + tensor.offset;
    return (tensor.kind == TensorKind::kIntermediate ? arena_ : io_).data() + tensor.offset;
  }

  float* Argument(const package::CallEntry& call, uint32_t index) {
    const KernelBuffer& buffer = program_.Kernel(call).buffers[index];
    uint8_t* start = buffer.role == BufferRole::kWorkspace ? arena_.data() + call.workspace_offset + buffer.offset
                                                           : Memory(program_.Arguments(call)[index]);
    return reinterpret_cast<float*>(start);
  }

  void Launch(const package::CallEntry& call, const KernelLaunch& launch) {
    device_.launches.push_back(launch.function);
    std::vector<float*> arguments;
    for (const uint32_t index : launch.arguments) arguments.push_back(Argument(call, index));
    for (int64_t i = 0; i < launch.groups * launch.lanes; ++i) {
      if (launch.function == "add_bias") {
        arguments[2][i] = arguments[0][i] + arguments[1][i % launch.lanes];
      } else {
        HONE_CHECK(launch.function == "scale_up" || launch.function == "scale_out");
        arguments[1][i] = (launch.function == "scale_up" ? 2 : 1) * arguments[0][i];
      }
    }
  }

  const ProgramView& program_;
  const runtime::HomeView& home_;
  FakeDevice& device_;
  std::vector<uint8_t> constants_, arena_, io_;
  std::vector<uint8_t*> ports_;  // per tensor
};

}  // namespace

runtime::BackendLoader LoaderFor(FakeDevice* device) {
  return [device](const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const runtime::BackendOptions&, std::unique_ptr<runtime::Backend>* backend) -> Fault {
    const runtime::UnitView& unit = program.units[program.homes[home].units.front()];
    if (unit.entry.code != CodeKind::kOpenCl) return runtime::Incompatible("no code for the device");
    *backend = std::make_unique<FakeBackend>(program, home, constants, device);
    return {};
  };
}

}  // namespace hone::tests

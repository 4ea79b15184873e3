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
  FakeBackend(const ProgramView& program, std::span<const uint8_t> constants, FakeDevice* device)
      : program_(program),
        device_(*device),
        constants_(constants.begin(), constants.end()),
        arena_(program.manifest->arena_bytes, 0xee),
        io_(program.manifest->io_bytes, 0xee),
        ports_(program.tensors.size(), nullptr) {
    ++device_.uploads_of_constants;
  }

  void SetPortMemory(uint32_t tensor, uint8_t* host) override { ports_[tensor] = host; }

  Fault Run(std::span<int64_t> nanoseconds) override {
    if (!device_.failure.empty()) return runtime::IoError(device_.failure);
    for (const uint32_t id : program_.inputs) std::memcpy(Memory(id), ports_[id], program_.tensors[id].bytes);
    for (size_t i = 0; i < program_.calls.size(); ++i) {
      const package::CallEntry& call = program_.calls[i];
      for (const KernelLaunch& launch : program_.Kernel(call).main) Launch(call, launch);
      if (!nanoseconds.empty()) nanoseconds[i] = static_cast<int64_t>(100 + i);
    }
    for (const package::CopyEntry& copy : program_.copies) {
      std::memcpy(Memory(copy.target), Memory(copy.source), program_.tensors[copy.target].bytes);
    }
    for (const uint32_t id : program_.outputs) std::memcpy(ports_[id], Memory(id), program_.tensors[id].bytes);
    return {};
  }

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
  FakeDevice& device_;
  std::vector<uint8_t> constants_, arena_, io_;
  std::vector<uint8_t*> ports_;  // per tensor
};

}  // namespace

runtime::BackendLoader LoaderFor(FakeDevice* device) {
  return [device](const ProgramView& program, std::span<const uint8_t> constants, int,
                  std::unique_ptr<runtime::Backend>* backend) -> Fault {
    if (program.manifest->code != CodeKind::kOpenCl) return runtime::Incompatible("no code for the device");
    *backend = std::make_unique<FakeBackend>(program, constants, device);
    return {};
  };
}

}  // namespace hone::tests

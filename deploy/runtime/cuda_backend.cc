// SPDX-License-Identifier: Apache-2.0
// The back end of CUDA devices. A run is one graph, recorded at the first one: the inputs come from pinned memory,
// which the device reads by itself, all launches follow, and the outputs go to pinned memory. Inputs and outputs that
// are on the device are copied there, before and after the graph, so that it stays right for whatever is bound next.
#include <cstring>

#include "deploy/runtime/lane_backend.h"
#include "drivers/lane_drivers.h"

namespace hone::runtime {
namespace {

class CudaBackend : public LaneBackend<drivers::CudaDriver> {
 public:
  explicit CudaBackend(const ProgramView& program) : LaneBackend(program), staged_(program.tensors.size()) {}

  // Every input and output gets its pinned memory, in which it stays: what was recorded holds.
  Fault Stage() {
    for (const auto* ports : {&program_.inputs, &program_.outputs}) {
      for (const uint32_t id : *ports) {
        HONE_RETURN_IF_FAULT(ToFault(device_.AllocatePinned(program_.tensors[id].bytes, &staged_[id].pinned)));
        LaneBackend::PlacePort(id, reinterpret_cast<uint8_t*>(staged_[id].pinned.bytes().data()));
      }
    }
    return {};
  }

  void PlacePort(uint32_t tensor, uint8_t* host) override {
    Staged& staged = staged_[tensor];
    staged.host = host;
    if (staged.on_device.bytes() == 0) return;
    staged.on_device = {};
    LaneBackend::PlacePort(tensor, reinterpret_cast<uint8_t*>(staged.pinned.bytes().data()));
    ForgetGraph();
  }

  bool PlaceOnDevice(uint32_t tensor, DLDevice device, void* memory) override {
    const bool is_cuda = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
    if (!is_cuda || device.device_id != device_.number()) return false;
    Staged& staged = staged_[tensor];
    const bool before = staged.on_device.bytes() > 0;
    staged.on_device = device_.Adopt(memory, program_.tensors[tensor].bytes);
    if (before || staged.on_device.bytes() == 0) return true;
    LaneBackend::PlacePort(tensor, nullptr);
    ForgetGraph();
    return true;
  }

  std::string DeviceTaken() const override {
    return "CUDA device " + std::to_string(device_.number()) + ", '" + device_.info().name + "'";
  }

  Fault Run(std::span<int64_t> nanoseconds) override {
    for (const uint32_t id : program_.inputs) {
      if (IsStaged(id)) std::memcpy(staged_[id].pinned.bytes().data(), staged_[id].host, program_.tensors[id].bytes);
    }
    const Error handed_over = HandAllOver(nanoseconds);
    const Error done = device_.Finish();
    HONE_RETURN_IF_FAULT(ToRunFault(handed_over.ok() ? done : handed_over));
    for (const uint32_t id : program_.outputs) {
      if (IsStaged(id)) std::memcpy(staged_[id].host, staged_[id].pinned.bytes().data(), program_.tensors[id].bytes);
    }
    return {};
  }

 private:
  struct Staged {
    drivers::cuda::PinnedMemory pinned;
    uint8_t* host = nullptr;
    drivers::cuda::Buffer on_device;  // the caller's; empty: it is in this process
  };

  bool IsStaged(uint32_t tensor) const {
    return staged_[tensor].on_device.bytes() == 0 && program_.tensors[tensor].bytes > 0;
  }

  Error HandAllOver(std::span<int64_t> nanoseconds) {
    if (nanoseconds.empty()) Record();
    Error error;
    for (const uint32_t id : program_.inputs) {
      const drivers::cuda::Buffer& given = staged_[id].on_device;
      if (error.ok()) error = device_.EnqueueCopy(given, Memory(id), given.bytes());
    }
    if (!error.ok()) return error;
    error = nanoseconds.empty() && graph_.defined() ? device_.EnqueueGraph(graph_) : HandOver(nanoseconds);
    for (const uint32_t id : program_.outputs) {
      const drivers::cuda::Buffer& given = staged_[id].on_device;
      if (error.ok()) error = device_.EnqueueCopy(Memory(id), given, given.bytes());
    }
    return error;
  }

  void ForgetGraph() {
    graph_ = {};
    tried_to_record_ = false;
  }

  // Once. Where it cannot be, as with the drivers of old boards, every launch is handed over by itself.
  void Record() {
    if (std::exchange(tried_to_record_, true)) return;
    if (!device_.BeginGraph().ok()) return;
    const Error handed_over = HandOver(std::span<int64_t>());
    drivers::cuda::Graph graph;
    const Error ended = device_.EndGraph(&graph);  // also after an error: the stream must stop recording
    if (handed_over.ok() && ended.ok()) graph_ = std::move(graph);
  }

  std::vector<Staged> staged_;  // per tensor
  drivers::cuda::Graph graph_;
  bool tried_to_record_ = false;
};

}  // namespace

Fault LoadCudaBackend(const ProgramView& program, std::span<const uint8_t> constants, int,
                      std::unique_ptr<Backend>* backend) {
  auto result = std::make_unique<CudaBackend>(program);
  HONE_RETURN_IF_FAULT(result->Load(constants));
  HONE_RETURN_IF_FAULT(result->Stage());
  *backend = std::move(result);
  return {};
}

}  // namespace hone::runtime

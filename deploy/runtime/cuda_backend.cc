// The back end of CUDA devices. A run is one graph, recorded at the first one: the inputs come from pinned memory,
// which the device reads by itself, all launches follow, and the outputs go to pinned memory.
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

  void PlacePort(uint32_t tensor, uint8_t* host) override { staged_[tensor].host = host; }

  Fault Run(std::span<int64_t> nanoseconds) override {
    for (const uint32_t id : program_.inputs) {
      const std::span<std::byte> pinned = staged_[id].pinned.bytes();
      if (!pinned.empty()) std::memcpy(pinned.data(), staged_[id].host, pinned.size());
    }
    if (nanoseconds.empty()) Record();
    const Error handed_over =
        nanoseconds.empty() && graph_.defined() ? device_.EnqueueGraph(graph_) : HandOver(nanoseconds);
    const Error done = device_.Finish();
    if (!handed_over.ok()) return IoError(handed_over.text);
    if (!done.ok()) return IoError(done.text);
    for (const uint32_t id : program_.outputs) {
      const std::span<std::byte> pinned = staged_[id].pinned.bytes();
      if (!pinned.empty()) std::memcpy(staged_[id].host, pinned.data(), pinned.size());
    }
    return {};
  }

 private:
  struct Staged {
    drivers::cuda::PinnedMemory pinned;
    uint8_t* host = nullptr;
  };

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

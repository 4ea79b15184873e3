// SPDX-License-Identifier: Apache-2.0
// The back end of CUDA devices. Each segment of a run is one CUDA graph, which the first run records: copies of the
// inputs from pinned memory, all launches, copies of the outputs to pinned memory. A program without borders is one
// segment. Inputs and outputs that are bound to device memory are copied within the device, before and after the graph.
// Therefore a graph stays valid if other memory is bound. It is only for the sizes of the run that recorded it: the
// first run at new open sizes launches one kernel after the other, and the second one records, because to make a graph
// takes longer than such a run.
#include <cstring>

#include "deploy/runtime/lane_backend.h"
#include "drivers/lane_drivers.h"

namespace hone::runtime {
namespace {

class CudaBackend : public LaneBackend<drivers::CudaDriver> {
 public:
  CudaBackend(const ProgramView& program, uint32_t home)
      : LaneBackend(program, home), staged_(program.tensors.size()) {}

  // Allocates pinned memory for every input and output of the home. It is never moved, so that recorded graphs stay
  // valid.
  Fault Stage() {
    for (const auto* ports : {&home_.inputs, &home_.outputs}) {
      for (const uint32_t id : *ports) {
        HONE_RETURN_IF_FAULT(ToFault(device_.AllocatePinned(program_.tensors[id].bytes, &staged_[id].pinned)));
        LaneBackend::SetPortMemory(id, reinterpret_cast<uint8_t*>(staged_[id].pinned.bytes().data()));
      }
    }
    return {};
  }

  void SetPortMemory(uint32_t tensor, uint8_t* host) override {
    Staged& staged = staged_[tensor];
    staged.host = host;
    if (staged.on_device.bytes() == 0) return;
    staged.on_device = {};
    LaneBackend::SetPortMemory(tensor, reinterpret_cast<uint8_t*>(staged.pinned.bytes().data()));
    ForgetGraphs();
  }

  bool PlaceOnDevice(uint32_t tensor, DLDevice device, void* memory) override {
    const bool is_cuda = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
    if (!is_cuda || device.device_id != device_.number()) return false;
    Staged& staged = staged_[tensor];
    const bool before = staged.on_device.bytes() > 0;
    staged.on_device = device_.Adopt(memory, program_.tensors[tensor].bytes);
    if (before || staged.on_device.bytes() == 0) return true;
    LaneBackend::SetPortMemory(tensor, nullptr);
    ForgetGraphs();
    return true;
  }

  std::string DeviceTaken() const override {
    return "CUDA device " + std::to_string(device_.number()) + ", '" + device_.info().name + "'";
  }

  Fault Run(const Segment& segment, std::span<int64_t> nanoseconds) override {
    Error enqueued;
    if (MayHaveNewSizes(segment)) {
      enqueued = UpdateSizes();
      if (HasNewSizes()) ForgetGraphs();
    }
    if (segment.begins) {
      for (const uint32_t id : home_.inputs) {
        if (IsStaged(id)) std::memcpy(staged_[id].pinned.bytes().data(), staged_[id].host, Bytes(id));
      }
    }
    if (enqueued.ok()) enqueued = EnqueueAll(segment, nanoseconds);
    if (enqueued.ok() && !segment.ends) return {};
    const Error done = device_.Finish();
    HONE_RETURN_IF_FAULT(ToRunFault(enqueued.ok() ? done : enqueued));
    for (const uint32_t id : home_.outputs) {
      if (IsStaged(id)) std::memcpy(staged_[id].host, staged_[id].pinned.bytes().data(), Bytes(id));
    }
    return {};
  }

 private:
  struct Staged {
    drivers::cuda::PinnedMemory pinned;  // owned; the tensor's size
    uint8_t* host = nullptr;             // memory of the model or the caller, copied from or to `pinned` in each run
    drivers::cuda::Buffer on_device;     // bound device memory, not owned; empty: the tensor is in this process
  };

  // Whether the tensor is copied between `host` and `pinned`.
  bool IsStaged(uint32_t tensor) const { return staged_[tensor].on_device.bytes() == 0 && Bytes(tensor) > 0; }

  // The bytes to copy between the tensor and bound device memory; 0 if it is not bound to any.
  uint64_t BoundBytes(uint32_t tensor) const { return staged_[tensor].on_device.bytes() == 0 ? 0 : Bytes(tensor); }

  struct Recorded {
    drivers::cuda::Graph graph;  // empty: not recorded
    bool tried = false;          // a failed attempt is not repeated at every run
  };

  // Enqueues a segment: its graph, or, to measure calls or without a graph, its parts one by one.
  Error EnqueueAll(const Segment& segment, std::span<int64_t> nanoseconds) {
    // A graph would keep the memory from before a swap, so programs with actions have none.
    const bool by_graph = nanoseconds.empty() && !HasNewSizes() && !HasActions();
    if (by_graph) Record(segment);
    Error error;
    if (segment.begins) {
      for (const uint32_t id : home_.inputs) {
        const drivers::cuda::Buffer& given = staged_[id].on_device;
        if (error.ok()) error = device_.EnqueueCopy(given, Memory(id), BoundBytes(id));
      }
    }
    if (!error.ok()) return error;
    const bool has_graph = by_graph && recorded_[segment.number].graph.defined();
    error = has_graph ? device_.EnqueueGraph(recorded_[segment.number].graph) : Enqueue(segment, nanoseconds);
    if (!segment.ends) return error;
    for (const uint32_t id : home_.outputs) {
      const drivers::cuda::Buffer& given = staged_[id].on_device;
      if (error.ok()) error = device_.EnqueueCopy(Memory(id), given, BoundBytes(id));
    }
    return error;
  }

  // The next run records again. Needed when a port changes between pinned and device memory, and when sizes change.
  void ForgetGraphs() { recorded_.clear(); }

  // Records the graph of a segment at its first run, except one with new sizes. If the driver cannot, as on old boards,
  // the graph stays empty and every launch is enqueued by itself.
  void Record(const Segment& segment) {
    if (recorded_.size() <= segment.number) recorded_.resize(segment.number + 1);
    Recorded& recorded = recorded_[segment.number];
    if (std::exchange(recorded.tried, true)) return;
    if (!device_.BeginGraph().ok()) return;
    const Error enqueued = Enqueue(segment, {});
    drivers::cuda::Graph graph;
    const Error ended = device_.EndGraph(&graph);  // also after an error, to end the recording
    if (enqueued.ok() && ended.ok()) recorded.graph = std::move(graph);
  }

  std::vector<Staged> staged_;      // per tensor; used for inputs and outputs only
  std::vector<Recorded> recorded_;  // per segment of the home
};

}  // namespace

Fault LoadCudaBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                      const BackendOptions& options, std::unique_ptr<Backend>* backend) {
  auto result = std::make_unique<CudaBackend>(program, home);
  HONE_RETURN_IF_FAULT(result->Load(constants, options));
  HONE_RETURN_IF_FAULT(result->Stage());
  *backend = std::move(result);
  return {};
}

}  // namespace hone::runtime

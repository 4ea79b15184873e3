// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/dtype.h"

namespace hone::package {
namespace {

bool Overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Finds the lifetime of every tensor, in moments: the calls and actions of the program in order. It is empty (first >
// last) for a tensor that nothing uses, and for all tensors that are not intermediates.
class Lifetimes {
 public:
  explicit Lifetimes(const PackageProgram& program) : program_(program), of_tensor_(program.tensors.size()) {
    for (size_t i = 0; i < of_tensor_.size(); ++i) {
      uint64_t bytes = SizeOf(program.tensors[i].dtype);
      for (const int64_t dimension : program.tensors[i].shape) bytes *= static_cast<uint64_t>(dimension);
      of_tensor_[i] = {bytes, 0, -1};
    }
  }

  absl::Status Find() {
    auto border = program_.borders.begin();
    auto action = program_.actions.begin();
    for (size_t index = 0; index < program_.calls.size(); ++index) {
      for (; action != program_.actions.end() && action->call <= index; ++action)
        HONE_RETURN_IF_ERROR(TouchAction(*action));
      const PackageCall& call = program_.calls[index];
      HONE_RETURN_IF_ERROR(CheckCall(call, index));
      for (; border != program_.borders.end() && border->call <= index; ++border) {
        HONE_RETURN_IF_ERROR(Touch(border->source, false));
        HONE_RETURN_IF_ERROR(Touch(border->target, true));
      }
      const KernelInterface& kernel = program_.kernels[call.kernel];
      for (size_t a = 0; a < call.arguments.size(); ++a) {
        if (!kernel.buffers[a].used || kernel.buffers[a].role == BufferRole::kSizes) continue;
        HONE_RETURN_IF_ERROR(Touch(call.arguments[a], kernel.buffers[a].role == BufferRole::kOutput));
      }
      of_call_.push_back(now_++);
    }
    for (; action != program_.actions.end(); ++action) HONE_RETURN_IF_ERROR(TouchAction(*action));
    for (const PackageCopy& copy : program_.copies) HONE_RETURN_IF_ERROR(Touch(copy.source, false));
    for (bool changes = true; changes;) {
      changes = ShareSwapped();
      for (const auto& [first, last] : loops_) changes = Extend(first, last) || changes;
    }
    return absl::OkStatus();
  }

  const std::vector<Lifetime>& of_tensor() const { return of_tensor_; }
  int64_t MomentOf(size_t call) const { return of_call_[call]; }

 private:
  absl::Status CheckCall(const PackageCall& call, size_t index) const {
    if (call.kernel >= program_.kernels.size()) {
      return absl::InvalidArgumentError(
          fmt::format("call {} runs kernel {}, but there are {} kernels", index, call.kernel, program_.kernels.size()));
    }
    const KernelInterface& kernel = program_.kernels[call.kernel];
    if (call.arguments.size() == kernel.argument_count()) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("call {} of '{}' has {} arguments, but the kernel takes {}", index,
                                                  kernel.name, call.arguments.size(), kernel.argument_count()));
  }

  absl::Status TouchAction(const PackageAction& action) {
    if (action.source != kNoTensor) HONE_RETURN_IF_ERROR(Touch(action.source, action.op == ActionOp::kSwap));
    if (action.target != kNoTensor) HONE_RETURN_IF_ERROR(Touch(action.target, true));
    of_action_.push_back(now_);
    if (action.op == ActionOp::kJump && action.destination < of_action_.size() - 1) {
      loops_.emplace_back(of_action_[action.destination], now_);
    }
    ++now_;
    return absl::OkStatus();
  }

  // Extends the lifetime of tensor `id` to this moment, when it is written or read.
  absl::Status Touch(TensorId id, bool written) {
    if (id >= of_tensor_.size()) return absl::InvalidArgumentError(fmt::format("there is no tensor {}", id));
    if (program_.tensors[id].kind != TensorKind::kIntermediate) return absl::OkStatus();
    Lifetime& lifetime = of_tensor_[id];
    if (lifetime.last < 0) {
      if (!written) {
        return absl::InvalidArgumentError(fmt::format(
            "tensor {} '{}' is used at moment {} before any call has written it", id, program_.tensors[id].name, now_));
      }
      lifetime.first = now_;
    }
    lifetime.last = now_;
    return absl::OkStatus();
  }

  // A tensor that a loop reads from outside, or that is read after the loop, must last for the whole loop. Returns
  // whether a lifetime has changed.
  bool Extend(int64_t first, int64_t last) {
    bool changes = false;
    for (Lifetime& lifetime : of_tensor_) {
      const bool is_used = lifetime.last >= first && lifetime.first <= last;
      const bool is_outside = lifetime.first < first || lifetime.last > last;
      if (!is_used || !is_outside || (lifetime.first <= first && lifetime.last >= last)) continue;
      lifetime.first = std::min(lifetime.first, first);
      lifetime.last = std::max(lifetime.last, last);
      changes = true;
    }
    return changes;
  }

  // Tensors that exchange their memory have one lifetime: any of them may be in the memory of any other. Returns
  // whether a lifetime has changed.
  bool ShareSwapped() {
    bool changes = false;
    for (const PackageAction& action : program_.actions) {
      if (action.op != ActionOp::kSwap) continue;
      Lifetime &a = of_tensor_[action.source], &b = of_tensor_[action.target];
      if (a.first == b.first && a.last == b.last) continue;
      a.first = b.first = std::min(a.first, b.first);
      a.last = b.last = std::max(a.last, b.last);
      changes = true;
    }
    return changes;
  }

  const PackageProgram& program_;
  std::vector<Lifetime> of_tensor_;
  std::vector<int64_t> of_call_, of_action_;        // moments
  std::vector<std::pair<int64_t, int64_t>> loops_;  // first and last moment
  int64_t now_ = 0;
};

}  // namespace

MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Buffers of equal size are ordered by their first moment, then by index: the plan depends on the model only.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return lifetimes[a].first < lifetimes[b].first;
  });
  std::vector<size_t> placed;  // indices of placed lifetimes, by ascending offset
  for (const size_t current : order) {
    const uint64_t bytes = AlignUp(lifetimes[current].bytes, alignment);
    if (bytes == 0) continue;
    uint64_t offset = 0;
    for (const size_t other : placed) {
      if (!Overlap(lifetimes[current], lifetimes[other])) continue;
      if (plan.offsets[other] >= offset + bytes) break;  // fits before this one, and the rest start even later
      offset = std::max(offset, plan.offsets[other] + AlignUp(lifetimes[other].bytes, alignment));
    }
    plan.offsets[current] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](uint64_t value, size_t id) { return value < plan.offsets[id]; });
    placed.insert(place, current);
  }
  return plan;
}

uint64_t PeakBytes(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  std::map<int64_t, int64_t> change;  // by moment: by how much the bytes alive change there
  for (const Lifetime& lifetime : lifetimes) {
    change[lifetime.first] += static_cast<int64_t>(AlignUp(lifetime.bytes, alignment));
    change[lifetime.last + 1] -= static_cast<int64_t>(AlignUp(lifetime.bytes, alignment));
  }
  int64_t alive = 0, peak = 0;
  for (const auto& [moment, bytes] : change) {
    alive += bytes;
    peak = std::max(peak, alive);
  }
  return static_cast<uint64_t>(peak);
}

absl::Status PlanArena(PackageProgram& program) {
  Lifetimes found(program);
  HONE_RETURN_IF_ERROR(found.Find());
  for (uint32_t home = 0; home < program.arena_bytes.size(); ++home) {
    bool on_device = false;
    for (const PackageUnit& unit : program.units) {
      on_device |= unit.home == home && FindCodeKind(unit.kind)->has_lanes;
    }
    std::vector<Lifetime> lifetimes;
    std::vector<uint64_t*> offsets;
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      PackageTensor& tensor = program.tensors[i];
      if (tensor.kind != TensorKind::kIntermediate || tensor.home != home) continue;
      Lifetime lifetime = found.of_tensor()[i];
      if (lifetime.last < 0) lifetime = {lifetime.bytes, 0, 0};  // unused, but the format needs a valid offset
      lifetimes.push_back(lifetime);
      offsets.push_back(&tensor.arena_offset);
    }
    for (size_t index = 0; index < program.calls.size(); ++index) {
      PackageCall& call = program.calls[index];
      if (program.HomeOf(call) != home) continue;
      const auto bytes = static_cast<uint64_t>(program.kernels[call.kernel].workspace_bytes);
      lifetimes.push_back({bytes, found.MomentOf(index), found.MomentOf(index)});
      offsets.push_back(&call.workspace_offset);
    }
    const MemoryPlan plan = PlanMemory(lifetimes, on_device ? kSliceAlignment : kTensorAlignment);
    for (size_t i = 0; i < offsets.size(); ++i) *offsets[i] = plan.offsets[i];
    program.arena_bytes[home] = plan.arena_bytes;
  }
  return absl::OkStatus();
}

}  // namespace hone::package

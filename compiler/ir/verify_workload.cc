// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/status.h"
#include "compiler/ir/expr_checker.h"
#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/typing.h"
#include "compiler/ir/workload.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr int64_t kWorkloadElementsMax = int64_t{1} << 56;

class WorkloadVerifier {
 public:
  absl::Status Run(const Workload& workload) {
    for (const OpenSize& size : workload.sizes) {
      if (size.min < 0 || size.min > size.max) {
        return Illegal("the range of size '{}' is [{}, {}]; it must begin at 0 or above and not end before", size.name,
                       size.min, size.max);
      }
      if (!sizes_.emplace(size.name, size).second) return Illegal("size '{}' is defined twice", size.name);
      axis_names_.insert(size.name);
    }
    for (const Param& param : workload.params) {
      HONE_RETURN_IF_ERROR(Declare(param.buffer));
      if (!(std::isfinite(param.low) && std::isfinite(param.high) && param.low <= param.high)) {
        return Illegal("the range of '{}' is [{}, {}]; its ends must be finite, the low end first", param.buffer->name,
                       param.low, param.high);
      }
    }
    for (const Stage& stage : workload.stages) {
      if (stage.buffer == nullptr) return absl::InvalidArgumentError("a stage has no buffer");
      HONE_RETURN_IF_ERROR(Annotate(CheckStage(stage), fmt::format("stage '{}'", stage.buffer->name)));
      HONE_RETURN_IF_ERROR(Declare(stage.buffer));
    }
    std::set<const BufferNode*> outputs;
    for (const Buffer& output : workload.outputs) {
      if (output == nullptr) return absl::InvalidArgumentError("an output is missing");
      if (workload.FindStage(output.get()) == nullptr) return Illegal("output '{}' is not a stage", output->name);
      if (!outputs.insert(output.get()).second) return Illegal("output '{}' is listed twice", output->name);
    }
    return outputs.empty() ? absl::InvalidArgumentError("it has no output") : absl::OkStatus();
  }

 private:
  template <typename... Args>
  static absl::Status Illegal(fmt::format_string<Args...> format, Args&&... args) {
    return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
  }

  absl::Status Declare(const Buffer& buffer) {
    if (buffer == nullptr) return absl::InvalidArgumentError("a parameter has no buffer");
    if (!names_.insert(buffer->name).second) return Illegal("the name '{}' is used twice", buffer->name);
    int64_t elements = 1;
    for (const Size& extent : buffer->shape) {
      HONE_RETURN_IF_ERROR(CheckSymbols(extent));
      if (extent.min() < 0) return Illegal("'{}' has a negative extent", buffer->name);
      if (__builtin_mul_overflow(elements, std::max<int64_t>(extent.max(), 1), &elements) ||
          elements > kWorkloadElementsMax) {
        return Illegal("'{}' has more than 2^56 elements", buffer->name);
      }
    }
    exprs_.buffers.insert(buffer.get());
    return absl::OkStatus();
  }

  // Checks that the workload declares all symbols of the size, with their ranges.
  absl::Status CheckSymbols(const Size& size) {
    absl::Status status;
    size.ForEachSymbol([&](const OpenSize& symbol) {
      const auto found = sizes_.find(symbol.name);
      if (found == sizes_.end() || found->second != symbol) status = Illegal("size '{}' is not declared", symbol.name);
    });
    return status;
  }

  absl::Status BindAxes(const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) {
      HONE_RETURN_IF_ERROR(CheckSymbols(axis.extent));
      if (axis.extent.min() < 0) return Illegal("axis '{}' has a negative extent", axis.name);
      if (!axis_names_.insert(axis.name).second) return Illegal("axis '{}' is defined twice", axis.name);
      exprs_.vars.emplace(axis.name, kIndexType);
    }
    return absl::OkStatus();
  }

  absl::Status CheckStage(const Stage& stage) {
    exprs_.vars.clear();
    for (const auto& [name, size] : sizes_) exprs_.vars.emplace(name, kIndexType);
    HONE_RETURN_IF_ERROR(BindAxes(stage.axes));
    HONE_RETURN_IF_ERROR(BindAxes(stage.reduce_axes));
    const auto same = [](const Axis& axis, const Size& extent) { return axis.extent == extent; };
    const auto& shape = stage.buffer->shape;
    if (!std::equal(stage.axes.begin(), stage.axes.end(), shape.begin(), shape.end(), same)) {
      return absl::InvalidArgumentError("the extents of its axes must be the shape of its buffer");
    }
    if (stage.reduce_axes.empty() != (stage.reduction == Reduction::kNone)) {
      return absl::InvalidArgumentError("a reduction needs reduce axes, and reduce axes need a reduction");
    }
    HONE_RETURN_IF_ERROR(exprs_.Check(stage.value));
    const Type place{stage.buffer->dtype, 1};
    if (stage.value.type() != place) {
      return Illegal("its value is {}, but its buffer holds {}", ToString(stage.value.type()), ToString(place));
    }
    if (stage.reduction == Reduction::kNone) return absl::OkStatus();
    return stage.reduction == Reduction::kOrder ? CheckOrder(stage) : CheckReduction(stage.reduction, place);
  }

  static absl::Status CheckOrder(const Stage& stage) {
    constexpr int64_t kLengthMax = INT32_MAX;
    if (stage.buffer->dtype != DType::kInt64) {
      return Illegal("order is possible for i64 only, not for {}", ToString(Type{stage.buffer->dtype, 1}));
    }
    if (stage.axes.empty() || stage.reduce_axes.size() != 1) {
      return absl::InvalidArgumentError("order needs one reduce axis, and a last axis for the places");
    }
    const int64_t places = stage.axes.back().extent.max(), length = stage.reduce_axes[0].extent.max();
    if (places > length || length > kLengthMax) {
      return Illegal("order has {} places for {} values; it takes up to 2^31 - 1 values, and not more places", places,
                     length);
    }
    if (UsesVar(stage.value, stage.axes.back().name)) {
      return Illegal("the value of an order must not depend on the place, axis '{}'", stage.axes.back().name);
    }
    return absl::OkStatus();
  }

  ExprChecker exprs_{ExprChecker::Dialect::kWorkload};
  std::set<std::string, std::less<>> names_, axis_names_;
  std::map<std::string, OpenSize, std::less<>> sizes_;
};

}  // namespace

absl::Status CheckReduction(Reduction reduction, Type type) {
  const bool adds = reduction == Reduction::kSum || reduction == Reduction::kProd;
  if (Folds(reduction) && !IsStorageOnly(type.dtype) && !(adds && type.dtype == DType::kBool)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("reduction {} is not possible for {}", Name(reduction), ToString(type)));
}

absl::Status Verify(const Workload& workload) {
  return Annotate(WorkloadVerifier().Run(workload), fmt::format("workload \"{}\"", workload.op));
}

}  // namespace hone::ir

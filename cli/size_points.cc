// SPDX-License-Identifier: Apache-2.0
#include "cli/size_points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/shape_text.h"

namespace hone::cli {
namespace {

constexpr double kVerifiedFlopsMax = 4e9;  // the naive kernel does about 1e9 operations a second

std::vector<PointValues> DefaultPoints(const graph::Plan& plan) {
  PointValues middle, end;
  for (const ir::OpenSize& size : plan.sizes) {
    middle[size.name] = GeometricMiddle(size.min, size.max);
    end[size.name] = size.max;
  }
  return {middle, end};
}

int64_t ValueAt(const ir::Size& size, const PointValues& values) {
  std::map<std::string, ir::Size, std::less<>> numbers;
  for (const auto& [name, value] : values) numbers.emplace(name, value);
  const ir::Size number = size.Substitute(numbers);
  return number.IsFixed() ? number.value() : size.max();
}

// Takes the values of the sizes that the dimension decides. False: a size would leave its range.
bool TakeSizes(const graph::Plan& plan, const ir::Size& dimension, int64_t extent, PointValues& values) {
  for (const ir::OpenSize& size : plan.sizes) {
    const ir::Size open = ir::Size::Open(size);
    if (open.IsFixed() || dimension.IsFixed() || !ir::Divides(open, dimension)) continue;
    const ir::Size step = ir::ExactQuotient(dimension, open);
    if (!step.IsFixed()) continue;
    if (step.value() == 0 || extent % step.value() != 0) return false;
    const int64_t value = extent / step.value();
    if (value < size.min || value > size.max) return false;
    values[size.name] = value;
  }
  return true;
}

const graph::PlanTensor* FindInput(const graph::Plan& plan, const std::string& name) {
  for (const graph::TensorId id : plan.inputs) {
    const graph::PlanTensor& tensor = plan.tensors[static_cast<size_t>(id)];
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// As --at gives them: "ids=1,37 mask=1,37".
std::string Print(const ShapesAt& shapes) {
  std::vector<std::string> inputs;
  for (const auto& [name, shape] : shapes) inputs.push_back(fmt::format("{}={}", name, fmt::join(shape, ",")));
  return fmt::format("{}", fmt::join(inputs, " "));
}

// The values of the plan's sizes at these shapes; nullopt if a dimension is out of its range. The errors are those of
// PointsOf.
absl::StatusOr<std::optional<PointValues>> ValuesAt(const graph::Plan& plan, const ShapesAt& shapes) {
  PointValues values = DefaultPoints(plan).front();
  std::vector<std::pair<ir::Size, int64_t>> dimensions;
  for (const auto& [name, shape] : shapes) {
    const graph::PlanTensor* input = FindInput(plan, name);
    if (input == nullptr) return UsageError(fmt::format("--at {}: the model has no input of that name", name));
    if (input->type.shape.size() != shape.size()) {
      return UsageError(fmt::format("--at {}: {} dimensions are given; the input has {}", name, shape.size(),
                                    input->type.shape.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      dimensions.emplace_back(input->type.shape[d], shape[d]);
      const ir::Size& dimension = input->type.shape[d];
      const bool in_range = dimension.min() <= shape[d] && shape[d] <= dimension.max();
      if (!in_range || !TakeSizes(plan, dimension, shape[d], values)) return std::optional<PointValues>();
    }
  }
  for (const auto& [size, extent] : dimensions) {
    if (ValueAt(size, values) == extent) continue;
    return UsageError(fmt::format(
        "--at {}: the shapes contradict each other, or leave a size open; name the other inputs, too", Print(shapes)));
  }
  return std::optional(std::move(values));
}

}  // namespace

absl::StatusOr<std::vector<ShapesAt>> ParseShapesAt(const std::vector<std::string>& at) {
  if (at.size() > kSizePointsMax) {
    return UsageError(fmt::format("--at is given {} times; at most {} points are measured", at.size(), kSizePointsMax));
  }
  std::vector<ShapesAt> points;
  for (const std::string& text : at) {
    ShapesAt& point = points.emplace_back();
    const std::vector<std::string> inputs = absl::StrSplit(text, ' ', absl::SkipEmpty());
    for (const std::string& input : inputs) {
      HONE_ASSIGN_OR_RETURN(const NamedText named, SplitName("--at", input, "--at NAME=1,128"));
      HONE_ASSIGN_OR_RETURN(const std::vector<graph::DimRange> shape, ParseShape("--at", named.value, input));
      std::vector<int64_t>& numbers = point[named.name];
      for (const graph::DimRange& dimension : shape) {
        if (dimension.min != dimension.max) {
          return UsageError(fmt::format("--at {}: a point has a number for each dimension", text));
        }
        numbers.push_back(dimension.min);
      }
    }
    if (point.empty()) return UsageError(fmt::format("--at '{}' names no input; write --at NAME=1,128", text));
  }
  return points;
}

absl::StatusOr<std::vector<PointValues>> PointsOf(const graph::Plan& plan, const std::vector<ShapesAt>& at,
                                                  std::vector<bool>& used) {
  if (plan.sizes.empty()) return std::vector<PointValues>();
  std::vector<PointValues> points;
  for (size_t i = 0; i < at.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(std::optional<PointValues> values, ValuesAt(plan, at[i]));
    if (!values.has_value()) continue;
    used[i] = true;
    points.push_back(*std::move(values));
  }
  return points.empty() ? DefaultPoints(plan) : points;
}

std::vector<SizePoint> PointsOf(const graph::Plan& plan, int workload, std::span<const PointValues> points) {
  const std::vector<ir::OpenSize>& sizes = plan.workloads[static_cast<size_t>(workload)].sizes;
  std::vector<SizePoint> result;
  if (sizes.empty()) return result;
  for (const PointValues& values : points) {
    for (const graph::PlanCall& call : plan.calls) {
      if (call.workload != workload) continue;
      SizePoint point;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int64_t value = ValueAt(call.sizes[i], values);
        point.push_back({sizes[i].name, std::clamp(value, sizes[i].min, sizes[i].max)});
      }
      const bool known = std::ranges::find(result, point) != result.end();
      if (!known && result.size() < kSizePointsMax) result.push_back(std::move(point));
    }
  }
  return result;
}

double FlopsAt(const ir::Workload& workload, std::span<const SizePoint> points) {
  if (points.empty()) return ir::CountFlops(workload);
  double flops = 0;
  for (const SizePoint& point : points) flops += ir::CountFlops(ir::WithSizes(workload, ValuesOf(point)));
  return flops;
}

bool IsTooLarge(const ir::Workload& workload, std::span<const SizePoint> points) {
  return std::ranges::any_of(
      points, [&](const SizePoint& point) { return FlopsAt(workload, {&point, 1}) > kVerifiedFlopsMax; });
}

}  // namespace hone::cli

// SPDX-License-Identifier: Apache-2.0
// The points at which kernels with open sizes are measured: those of --at, else two points: the geometric middle of all
// ranges, and the end of all ranges. A kernel that is too large at the end is measured in the middle alone.
// base/size_points.h has their text.
#ifndef HONE_CLI_SIZE_POINTS_H_
#define HONE_CLI_SIZE_POINTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/size_points.h"
#include "compiler/graph/plan.h"

namespace hone::cli {

// The values of all open sizes of a plan, by name.
using PointValues = std::map<std::string, int64_t, std::less<>>;

// The shapes of inputs that one --at names: "ids=1,37 mask=1,37".
using ShapesAt = std::map<std::string, std::vector<int64_t>>;
// Parses the texts of --at, one for each point, at most kSizePointsMax. The errors are usage errors.
absl::StatusOr<std::vector<ShapesAt>> ParseShapesAt(const std::vector<std::string>& at);

// The points of the plan: those of `at` that are in its ranges, or the default ones if `at` is empty. Sizes that the
// shapes of a point do not decide have the middle of their range. used[i] becomes true if at[i] is one of the points;
// it has an element for each. No points if the plan has no open sizes. A usage error: a point names an input
// that the plan does not have, or has another rank, or its shapes contradict each other, or do not decide
// the sizes of a sum.
absl::StatusOr<std::vector<PointValues>> PointsOf(const graph::Plan& plan, const std::vector<ShapesAt>& at,
                                                  std::vector<bool>& used);

// The points of one workload of the plan: the sizes that its calls have at `points`, each once, at most kSizePointsMax.
std::vector<SizePoint> PointsOf(const graph::Plan& plan, int workload, std::span<const PointValues> points);

// Operations of one call of the workload at all points together; without points, of a call at its largest sizes.
double FlopsAt(const ir::Workload& workload, std::span<const SizePoint> points);
// Whether a workload has so many operations at one of the points that its verification by the naive kernel would take
// many seconds.
bool IsTooLarge(const ir::Workload& workload, std::span<const SizePoint> points);

}  // namespace hone::cli

#endif  // HONE_CLI_SIZE_POINTS_H_

// SPDX-License-Identifier: Apache-2.0
// Size points: the values of open sizes at which a kernel is measured, as one text: "n0=11,n1=44;n0=128,n1=512".
//
// Each point gives every open size of a workload a value, in the workload's order. Jobs, batches and records carry the
// text. A kernel's time is the sum of its times at the points. Not here: which points to measure (cli/size_points.h).
#ifndef HONE_BASE_SIZE_POINTS_H_
#define HONE_BASE_SIZE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

inline constexpr size_t kSizePointsMax = 16;  // of one workload

struct NamedSize {
  std::string name;
  int64_t value = 0;  // not negative
  bool operator==(const NamedSize&) const = default;
};
using SizePoint = std::vector<NamedSize>;

// The same by name, as ir::WithSizes takes it.
std::map<std::string, int64_t, std::less<>> ValuesOf(const SizePoint& point);

// The geometric middle of a range of sizes, which has the same ratio to both ends. A size of 0 counts as 1.
int64_t GeometricMiddle(int64_t min, int64_t max);

std::string PrintSizePoints(std::span<const SizePoint> points);

// The points of the text; none for "". nullopt: the text is not what PrintSizePoints writes, it has more than
// kSizePointsMax points, or its points name different sizes.
std::optional<std::vector<SizePoint>> ParseSizePoints(std::string_view text);

}  // namespace hone

#endif  // HONE_BASE_SIZE_POINTS_H_

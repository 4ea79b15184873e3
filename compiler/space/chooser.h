// SPDX-License-Identifier: Apache-2.0
// The Chooser: every free decision of a space goes through it, by name.
//
// A space is one function that asks a Chooser for tile sizes and options and writes the schedule they lead to. The
// search sees only the vector of decisions. The same function therefore serves for the default (every decision as
// preferred), for random sampling, for mutation (all decisions but one given) and for transfer (decisions of a related
// workload given).
#ifndef HONE_COMPILER_SPACE_CHOOSER_H_
#define HONE_COMPILER_SPACE_CHOOSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"

namespace hone::space {

struct Decision {
  std::string name;
  int64_t value;
  std::vector<int64_t> options;  // what could have been chosen here, ascending; empty when parsed from text
};
using Decisions = std::vector<Decision>;

// How much of each axis of a reduction's output an innermost tile had that served somewhere else: another tuner's, on
// another machine. What spaces prefer, then, as far as they can. "1x56x56x64:1x1x7x32" in text.
struct TileHint {
  std::vector<int64_t> extents;  // of the axes: a hint is for reductions with just these
  std::vector<int64_t> tile;     // as many; 1 at least, the extent at most
  bool operator==(const TileHint&) const = default;
};
std::string Print(const TileHint& hint);
// InvalidArgument for anything else.
absl::StatusOr<TileHint> ParseTileHint(std::string_view text);

class Chooser {
 public:
  // given: decisions to take by name, wherever asked for; a value that is not on offer becomes the nearest that is.
  // Other decisions are drawn from `random`, or as preferred if it is null. All that is given must outlive the Chooser.
  explicit Chooser(const Decisions* given = nullptr, Random* random = nullptr, const TileHint* hint = nullptr)
      : given_(given), random_(random), hint_(hint) {}

  // One of the options (not empty, distinct), which `preferred` should be one of.
  int64_t OneOf(std::string_view name, std::vector<int64_t> options, int64_t preferred);

  // A tile size for an axis of `extent`: options around powers of two, divisors of the extent and small sizes that
  // waste little, `preferred` too if it does, at most `limit`.
  int64_t Tile(std::string_view name, int64_t extent, int64_t limit, int64_t preferred);

  // How much of an axis the hint would have in a tile, of an output whose axes have these extents; else `otherwise`.
  int64_t Hinted(const std::vector<int64_t>& extents, size_t axis, int64_t otherwise) const;

  const Decisions& decisions() const { return taken_; }

 private:
  const Decisions* given_;
  Random* random_;
  const TileHint* hint_;
  Decisions taken_;
};

// "mr=7 nr=64 parallel=2"
std::string Print(const Decisions& decisions);
absl::StatusOr<Decisions> ParseDecisions(std::string_view text);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_CHOOSER_H_

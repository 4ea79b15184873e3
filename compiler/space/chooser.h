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
#include "compiler/ir/size.h"

namespace hone::space {

struct Decision {
  std::string name;
  int64_t value;
  std::vector<int64_t> options;  // the values to choose from, ascending; empty when parsed from text
};
using Decisions = std::vector<Decision>;

// The innermost tile of a reduction in a good schedule of another tuner, or of another machine. Spaces prefer the same
// tile, as far as they can. In text: "1x56x56x64:1x1x7x32".
struct TileHint {
  std::vector<int64_t> extents;  // the extents of the output's axes; the hint is for reductions with exactly these
  std::vector<int64_t> tile;     // the elements of the tile along each of these axes; from 1 to the extent
  bool operator==(const TileHint&) const = default;
};
std::string Print(const TileHint& hint);
// InvalidArgument for text in another form.
absl::StatusOr<TileHint> ParseTileHint(std::string_view text);

class Chooser {
 public:
  // given: decisions to take, by name. A value that is not among the options becomes the nearest option. All other
  // decisions are drawn from `random`; if that is null, they take the preferred value. The arguments must outlive the
  // Chooser.
  explicit Chooser(const Decisions* given = nullptr, Random* random = nullptr, const TileHint* hint = nullptr)
      : given_(given), random_(random), hint_(hint) {}

  // Makes one decision: returns one of the options and appends the decision to decisions(). Aborts if there are no
  // options; they must be distinct, in any order. If `preferred` is not an option, the nearest option stands for it. A
  // repeated name is not detected.
  int64_t OneOf(std::string_view name, std::vector<int64_t> options, int64_t preferred);

  // A tile size for an axis of `extent`, at most `limit`. The options are powers of two, divisors of the extent, small
  // sizes whose last tile wastes little, and the smaller of `extent` and `limit`. `preferred` is one of them if its
  // last tile wastes little. No size divides all values of an open extent, so all small sizes and `preferred` are
  // options then.
  int64_t Tile(std::string_view name, const ir::Size& extent, int64_t limit, int64_t preferred);

  // The hint's tile size for an axis of an output with these extents; `fallback` if the hint is for other extents, or
  // if there is no hint. Makes no decision.
  int64_t Hinted(const std::vector<int64_t>& extents, size_t axis, int64_t fallback) const;

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

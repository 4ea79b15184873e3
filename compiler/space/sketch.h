// The rules that derive schedules for any workload, and the one template they give way to. Private to space/.
//
// A Sketch carries the state being scheduled, the steps taken, and the Chooser. Each rule looks at the state, asks the
// chooser, and takes steps. rules are in sketch/, the register-tile template in templates/.
#ifndef HONE_COMPILER_SPACE_SKETCH_H_
#define HONE_COMPILER_SPACE_SKETCH_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/codegen/target.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/chooser.h"

namespace hone::space {

struct Sketch {
  schedule::State state;
  const codegen::Target& target;
  Chooser& chooser;
  schedule::Schedule steps;

  absl::Status Do(schedule::Step step);
  const schedule::Nest& Get(const std::string& stage) const;  // must exist
};

// Stages that load from the buffer, by name; how many loads there are in all.
std::vector<std::string> Readers(const schedule::State& state, const ir::BufferNode* buffer);
int CountLoads(const schedule::State& state, const ir::BufferNode* buffer);
// Steps of elements between neighbours along `axis` in the row-major buffer; nullopt if not affine in it.
std::optional<int64_t> StrideOf(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges);
ir::Ranges AxisRanges(const ir::Stage& stage);
std::vector<ir::Load> LoadsOf(const ir::Stage& stage);
// Whether the stage reads `buffer` only at its own axes, in order.
bool ReadsInPlace(const ir::Stage& stage, const ir::Buffer& buffer);
int CountNodes(const ir::Expr& e);
bool HasCall(const ir::Expr& e);
// A last tile that overlaps the one before needs no condition; only what is shorter than one tile must be masked.
inline schedule::Tail TailOf(int64_t extent, int64_t tile) {
  return extent >= tile ? schedule::Tail::kShift : schedule::Tail::kMask;
}
// Rounds up to a power of two.
int64_t PowerOfTwo(int64_t n);

// sketch/inline.cc: element-wise stages disappear into their readers where that repeats no work that matters.
absl::Status InlineStages(Sketch& sketch);
// sketch/elementwise.cc: a root stage without reduction: parallel chunks of vectors.
absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage);
// sketch/rows.cc: softmax, normalizations: everything about one row inside one loop. False if the workload is not of
// that kind.
absl::StatusOr<bool> ScheduleRows(Sketch& sketch);
// sketch/reduction.cc: splits a reduction along a contiguous axis into vector lanes, where no other axis can be
// vectorized.
absl::StatusOr<bool> ScheduleLaneReduction(Sketch& sketch, const std::string& stage);
// templates/register_tile.cc: a reduction `stage` computed in register tiles of its reader `reader` (which reads it in
// place): matrix multiply, convolution, depthwise convolution, pooling. `prefix` names the decisions.
absl::Status ScheduleRegisterTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix, bool pack);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_H_

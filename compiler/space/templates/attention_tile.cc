// SPDX-License-Identifier: Apache-2.0
// The template of attention: a product of matrices, work on the rows of its result (softmax), and a second product that
// sums over these rows.
//
// A task computes some rows through all stages. The rows of the first product stay in a core's second cache, and the
// stages between the products read them from there. Therefore the rows are never in memory as a whole. Both products
// are register tiles inside the task. In T. Dao et al., "FlashAttention", NeurIPS 2022, rows come in pieces whose
// results are scaled again. Here rows are whole and need no scaling; some rows of up to 100,000 elements fit a second
// cache.
#include "compiler/space/templates/attention_tile.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/reduction.h"
#include "compiler/space/sketch/rows.h"
#include "compiler/space/sketch/shared_tile.h"
#include "compiler/space/templates/register_tile.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int64_t kTaskRowsMin = 12;  // rows of a task: one or two register tiles of the products
constexpr int64_t kTileVectors = 4;   // vectors of a register tile's row, if the product is wide enough

// The stages of the two products, and the number of leading axes that all stages share. These axes count the rows.
struct Attention {
  std::string first, second;
  size_t common = 0;
};

// Whether the stage sums over the elements of a row of another stage.
bool SumsRows(const schedule::State& state, const ir::Stage& s, size_t common) {
  if (s.reduce_axes.size() != 1 || s.axes.size() != common + 1) return false;
  return std::ranges::any_of(LoadsOf(s), [&](const ir::Load& load) {
    if (state.FindNest(load.buffer.get()) == nullptr || load.indices.size() != common + 1) return false;
    const ir::Var* last = load.indices.back().As<ir::Var>();
    return last != nullptr && last->name == s.reduce_axes[0].name;
  });
}

std::optional<Attention> FindAttention(const schedule::State& state) {
  if (state.outputs.size() != 1) return std::nullopt;
  std::vector<const Nest*> products;
  int reductions = 0;
  for (const Nest& nest : state.nests) {
    if (nest.prepared || HasWindow(nest.stage)) return std::nullopt;
    reductions += nest.stage.reduction != ir::Reduction::kNone ? 1 : 0;
    if (IsContraction(nest.stage)) products.push_back(&nest);
  }
  const size_t common = CommonAxes(state);
  if (products.size() != 2 || reductions < 3 || common == 0) return std::nullopt;
  if (products[0]->stage.axes.size() != common + 1 || !SumsRows(state, products[1]->stage, common)) return std::nullopt;
  return Attention{products[0]->stage.buffer->name, products[1]->stage.buffer->name, common};
}

class AttentionTile {
 public:
  AttentionTile(Sketch& sketch, Attention found) : sketch_(sketch), found_(std::move(found)) {}

  absl::Status Run() {
    const std::string output = sketch_.state.outputs[0]->name;
    if (found_.second == output) {
      HONE_ASSIGN_OR_RETURN(found_.second, sketch_.CacheWrite(output));
    }
    const int64_t rows = ChooseRows();
    for (const std::string& stage : StagesOf(sketch_.state)) {
      const ir::Stage& s = sketch_.Get(stage).stage;
      if (s.reduction == ir::Reduction::kNone || IsContraction(s)) continue;
      HONE_RETURN_IF_ERROR(ScheduleVectorReduction(sketch_, stage).status());
    }
    std::vector<std::string> taken;
    HONE_ASSIGN_OR_RETURN(const SharedTile first, FindOrMakeReader(sketch_, found_.first, &taken));
    HONE_ASSIGN_OR_RETURN(const std::string sums, sketch_.CacheWrite(found_.second));
    const SharedTile second = {found_.second, sums};
    HONE_RETURN_IF_ERROR(Output(output, rows));
    // Readers come first, because a stage is computed where its readers are.
    const std::vector<std::string> stages = StagesOf(sketch_.state);
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      if (*stage == output || *stage == first.reduction || *stage == second.reduction) continue;
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{*stage, task_loop_}));
      if (*stage == first.reader || *stage == second.reader) {
        const SharedTile& tile = *stage == first.reader ? first : second;
        HONE_RETURN_IF_ERROR(ScheduleRegisterTile(sketch_, tile.reader, tile.reduction, tile.reduction + "."));
      } else {
        HONE_RETURN_IF_ERROR(VectorizeLast(sketch_, *stage, found_.common));
      }
    }
    return absl::OkStatus();
  }

 private:
  const ir::Stage& output() const { return sketch_.Get(sketch_.state.outputs[0]->name).stage; }

  // The rows of a task. Their intermediate results should leave room in a core's second cache for the operands, and
  // every thread should have a few tasks.
  int64_t ChooseRows() {
    int64_t row_bytes = 0;
    for (const Nest& nest : sketch_.state.nests) row_bytes += RowBytes(nest.stage, found_.common);
    int64_t all = 1;
    for (size_t d = 0; d < found_.common; ++d) all *= output().axes[d].extent.max();
    const int64_t extent = output().axes[found_.common - 1].extent.max(), tasks = 4 * sketch_.target.threads;
    const int64_t room = std::max<int64_t>(1, sketch_.target.memory.local_bytes / 4 * 3 / row_bytes);
    const int64_t share = std::min({std::max(kTaskRowsMin, CopiedBytesMax(sketch_.target) / 4 / row_bytes), room,
                                    (all + tasks - 1) / tasks, extent});
    const int64_t most = std::min(extent, room);
    return sketch_.chooser.Tile("task_rows", output().axes[found_.common - 1].extent, most,
                                PreferredRows(extent, share));
  }

  // The number of rows with the lowest cost, up to `most`. Each task reads the right-hand sides of both products from
  // the second cache, and its last register tiles may compute some rows twice.
  int64_t PreferredRows(int64_t extent, int64_t most) const {
    const target::Target& target = sketch_.target;
    const int64_t rows = std::max<int64_t>(1, (target.vector_registers - kTileVectors - 1) / kTileVectors);
    // The number of rows whose products take as long as reading one number of the right-hand side.
    const double read =
        4.0 * static_cast<double>(target.VectorWidth(4)) * target.core.multiply_adds / target.core.l2_bytes;
    const auto cost = [&](int64_t size) {
      const auto blocks = static_cast<double>((extent + size - 1) / size);
      return blocks * (static_cast<double>((size + rows - 1) / rows * rows) + read);
    };
    int64_t best = 1;
    for (int64_t size = 2; size <= most; ++size) {
      if (cost(size) < cost(best)) best = size;
    }
    return best;
  }

  absl::Status Output(const std::string& stage, int64_t rows) {
    const std::vector<ir::Axis> axes = output().axes;
    const std::string row = axes[found_.common - 1].name;
    HONE_ASSIGN_OR_RETURN(
        const SplitLoops task,
        sketch_.Split(row, rows, sketch_.IsOpen(row) ? schedule::Tail::kPeel : schedule::Tail::kShift));
    std::vector<std::string> around;
    for (size_t d = 0; d + 1 < found_.common; ++d) around.push_back(axes[d].name);
    around.push_back(task.outer);
    HONE_ASSIGN_OR_RETURN(task_loop_, sketch_.FuseAll(around));
    if (sketch_.target.threads > 1) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Annotate{task_loop_, ir::LoopKind::kParallel}));
    }
    return VectorizeLast(sketch_, stage, found_.common);
  }

  Sketch& sketch_;
  Attention found_;
  std::string task_loop_;
};

}  // namespace

bool FitsAttention(const schedule::State& state) { return FindAttention(state).has_value(); }

absl::Status ScheduleAttentionTile(Sketch& sketch) { return AttentionTile(sketch, *FindAttention(sketch.state)).Run(); }

}  // namespace hone::space

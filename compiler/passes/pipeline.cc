// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <functional>
#include <utility>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/split_launches.h"

namespace hone::passes {
namespace {

using Rewrite = std::function<absl::StatusOr<ir::Stmt>(const ir::Stmt&)>;

// Rewrites the statement that the open sizes are bound for. What a pass moves outwards thus stays inside.
absl::StatusOr<ir::Stmt> RewriteInside(const ir::Stmt& s, const ir::Ranges& sizes, const Rewrite& rewrite) {
  const ir::Let* const let = s.As<ir::Let>();
  if (let == nullptr || !sizes.contains(let->var)) return rewrite(s);
  HONE_ASSIGN_OR_RETURN(ir::Stmt body, RewriteInside(let->body, sizes, rewrite));
  return ir::MakeLet(let->var, let->value, std::move(body));
}

// Turns a rewrite of statements into a pass over a Func. A rewrite may take the ranges of the open sizes, too.
template <auto kRewrite>
absl::Status RewriteBody(ir::Func& func) {
  const ir::Ranges sizes = ir::SizeRanges(func);
  const auto rewrite = [&](const ir::Stmt& body) -> absl::StatusOr<ir::Stmt> {
    if constexpr (requires { kRewrite(body, sizes); }) {
      return kRewrite(body, sizes);
    } else {
      return kRewrite(body);
    }
  };
  HONE_ASSIGN_OR_RETURN(func.body, RewriteInside(func.body, sizes, rewrite));
  return absl::OkStatus();
}

ir::Stmt Simplify(const ir::Stmt& s, const ir::Ranges& sizes) { return ir::Simplify(s, sizes); }

bool IsBoundLoop(const ir::Stmt& s) {
  const ir::For* loop = s.As<ir::For>();
  return loop != nullptr && (loop->kind == ir::LoopKind::kGroup || loop->kind == ir::LoopKind::kLane);
}

// The rewrite, for funcs of threads with open sizes. Loops over groups and lanes must stay directly inside one another,
// and with fixed sizes there is nothing to gain.
template <auto kRewrite>
ir::Stmt InOpenThreads(const ir::Stmt& s, const ir::Ranges& sizes) {
  return sizes.empty() || ir::AnyStmt(s, IsBoundLoop) ? s : kRewrite(s);
}

constexpr Pass<ir::Func> kPasses[] = {
    {"simplify", RewriteBody<Simplify>},   {"peel", RewriteBody<Peel>},
    {"simplify", RewriteBody<Simplify>},   {"flatten", RewriteBody<Flatten>},
    {"simplify", RewriteBody<Simplify>},   {"peel_ends", RewriteBody<PeelEnds>},
    {"vectorize", RewriteBody<Vectorize>}, {"unroll", RewriteBody<Unroll>},
    {"simplify", RewriteBody<Simplify>},   {"hoist_divisions", RewriteBody<InOpenThreads<HoistDivisions>>},
};

// The values of open sizes, and of group.id and lane.id in the grid.
ir::Ranges RangesOf(const ir::Func& func) {
  ir::Ranges ranges = ir::SizeRanges(func);
  if (!func.grid.defined()) return ranges;
  ranges[ir::kGroupVar] = {0, func.grid.groups - 1};
  ranges[ir::kLaneVar] = {0, func.grid.lanes - 1};
  return ranges;
}

absl::Status PlaceBarriers(ir::Func& func) {
  func.body = InsertBarriers(func.body, RangesOf(func));
  return absl::OkStatus();
}

absl::Status SimplifyGrid(ir::Func& func) {
  func.body = ir::Simplify(func.body, RangesOf(func));
  return absl::OkStatus();
}

constexpr Pass<ir::Func> kGridPasses[] = {{"bind", Bind},
                                          {"simplify_grid", SimplifyGrid},
                                          {"uniform_masks", RewriteBody<BroadcastUniformMasks>},
                                          {"barriers", PlaceBarriers}};

}  // namespace

std::span<const Pass<ir::Func>> FuncPasses() { return kPasses; }
std::span<const Pass<ir::Func>> GridPasses() { return kGridPasses; }

absl::Status LowerLaunches(const ir::Func& func, const target::Target& target, PassOptions<ir::Func> options,
                           std::vector<ir::Func>* funcs, std::vector<ir::Buffer>* workspace) {
  Launches launches = SplitLaunches(func);
  const ir::GridLimits limits{target.hierarchy.max_lanes, target.memory.shared_bytes, target.hierarchy.sharing_groups};
  const bool verify = std::exchange(options.verify, false);
  for (ir::Func& launch : launches.funcs) {
    HONE_RETURN_IF_ERROR(RunPasses<ir::Func>(kGridPasses, launch, options));
    // Too many lanes, too much shared memory or a barrier in divergent code are errors of the schedule, so they are
    // reported before the pass runner would blame a pass.
    if (const absl::Status fits = ir::VerifyGrid(launch, limits); !fits.ok()) {
      return absl::FailedPreconditionError(std::string(fits.message()));
    }
    if (verify) HONE_RETURN_IF_ERROR(CheckLegalAfter("barriers", ir::Verify(launch)));
  }
  *funcs = std::move(launches.funcs);
  *workspace = std::move(launches.workspace);
  return absl::OkStatus();
}

absl::StatusOr<Loops> LowerLoops(const schedule::State& state, const target::Target& target, const std::string& name,
                                 PassOptions<ir::Func> options) {
  HONE_ASSIGN_OR_RETURN(Loops loops, BuildLoops(state, target, name));
  options.producer = "build_loops";
  HONE_RETURN_IF_ERROR(RunPasses<ir::Func>(kPasses, loops.main, options));
  if (loops.prepare.body.defined()) HONE_RETURN_IF_ERROR(RunPasses<ir::Func>(kPasses, loops.prepare, options));
  return loops;
}

int64_t WorkspaceBytes(const ir::Func& func) {
  int64_t bytes = 0;
  const std::function<void(const ir::Stmt&)> visit = [&](const ir::Stmt& s) {
    if (const ir::Alloc* alloc = s.As<ir::Alloc>(); alloc != nullptr && alloc->buffer->scope == ir::Scope::kWorkspace) {
      bytes += (ir::NumBytes(*alloc->buffer) + 63) / 64 * 64;
    }
    ir::ForEachChild(s, visit, [](const ir::Expr&) {});
  };
  if (func.body.defined()) visit(func.body);
  return bytes;
}

}  // namespace hone::passes

// SPDX-License-Identifier: Apache-2.0
// The rules of a Func with a grid: what the lanes of a group may do. See docs/IR.md, "Lanes".
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr size_t kQuotedCharsMax = 120;
// The limit on the size of a variable's value in terms of lane.id and group.id. A chain of Lets, each twice the one
// before, doubles the size at each link.
constexpr int64_t kLetOperationsMax = int64_t{1} << 16;

std::string Shortened(const Expr& e) {
  std::string text = Print(e);
  if (text.size() > kQuotedCharsMax) text = text.substr(0, kQuotedCharsMax) + "...";
  return text;
}

class GridVerifier {
 public:
  explicit GridVerifier(const GridLimits& limits) : limits_(limits) {}

  absl::Status Run(const Func& func) {
    if (func.grid.groups < 1) return Illegal("its grid has {} groups; it needs 1 or more", func.grid.groups);
    if (func.grid.lanes > limits_.max_lanes) {
      return absl::InvalidArgumentError(
          fmt::format("its groups have {} lanes; the target allows up to {}", func.grid.lanes, limits_.max_lanes));
    }
    lanes_ = func.grid.lanes;
    groups_ = func.grid.groups;
    HONE_RETURN_IF_ERROR(CheckOpenGroups(func));
    HONE_RETURN_IF_ERROR(CheckSharing(func));
    return Check(func.body);
  }

 private:
  template <typename... Args>
  static absl::Status Illegal(fmt::format_string<Args...> format, Args&&... args) {
    return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
  }

  // The number of groups must follow from the sizes, so that the caller can compute it.
  absl::Status CheckOpenGroups(const Func& func) const {
    if (!func.grid.open_groups.defined()) return absl::OkStatus();
    const std::optional<Size> groups = ToSize(func.grid.open_groups, OpenSizesOf(func));
    const std::string text = Shortened(func.grid.open_groups);
    if (!groups.has_value()) return Illegal("its number of groups, {}, is not arithmetic on its sizes", text);
    if (groups->max() <= groups_) return absl::OkStatus();
    return Illegal("its number of groups, {}, may be more than {}", text, groups_);
  }

  // Finds how many groups share copies, checks that number against the target and the grid, and counts the shared
  // memory that bulk copies need for their barriers.
  absl::Status CheckSharing(const Func& func) {
    if (!HasBulkCopies(func.body)) return absl::OkStatus();
    sharing_ = CountSharingGroups(func.body);
    shared_bytes_ = kMbarriersBytes;
    if (sharing_ == 0)
      return Illegal("its copies are shared by different numbers of groups; all must be shared by the same number");
    if (sharing_ > limits_.sharing_groups) {
      return Illegal("its copies are shared by {} groups; the target allows up to {}", sharing_,
                     limits_.sharing_groups);
    }
    if (sharing_ > 1 && func.grid.open_groups.defined()) {
      return Illegal("its copies are shared by {} groups, but sizes decide the number of groups", sharing_);
    }
    if (groups_ % sharing_ == 0) return absl::OkStatus();
    return Illegal("its copies are shared by {} groups, which does not divide the {} groups of the grid", sharing_,
                   groups_);
  }

  // Whether the value may differ between lanes that must stay together: the lanes of one group, and of groups that
  // share copies. A load from memory that these lanes share gives all of them the same value if its indices agree.
  bool IsDivergent(const Expr& e) const {
    bool divergent = false;
    ForEachExpr(Substitute(e, of_ids_), [&](const Expr& x) {
      if (const Var* var = x.As<Var>()) {
        divergent |= var->name == kLaneVar || (sharing_ > 1 && var->name == kGroupVar);
      }
      const Load* load = x.As<Load>();
      if (load == nullptr) return;
      divergent |= load->buffer->scope == Scope::kLocal || (sharing_ > 1 && IsShared(load->buffer->scope));
    });
    return divergent;
  }

  absl::Status Check(const Stmt& s) {
    if (swizzled_ > 0) HONE_RETURN_IF_ERROR(CheckSwizzled(s));
    return Match(
        s, [&](const For& n) { return CheckFor(n); }, [](const Store&) { return absl::OkStatus(); },
        [&](const Block& n) {
          for (const Stmt& child : n.stmts) {
            HONE_RETURN_IF_ERROR(n.name.empty() ? Check(child)
                                                : Annotate(Check(child), fmt::format("block '{}'", n.name)));
          }
          return absl::OkStatus();
        },
        [&](const If& n) { return CheckIf(n); }, [&](const Alloc& n) { return CheckAlloc(n); },
        [&](const Let& n) { return CheckLet(n); }, [&](const Barrier&) { return CheckConvergent("a barrier"); },
        [&](const Mma& n) { return CheckMma(n); },
        [&](const MmaWait&) { return CheckConvergent("a wait for tensor instructions ('settle')"); },
        [&](const Copy& n) { return IsBulkCopy(n) ? CheckCopy(n) : absl::OkStatus(); },
        [&](const Commit&) { return CheckConvergent("a commit"); },
        [&](const Wait&) { return CheckConvergent("a wait"); }, [&](const LaneReduce& n) { return CheckLaneReduce(n); },
        [](const Prefetch&) { return absl::OkStatus(); });
  }

  absl::Status CheckLet(const Let& let) {
    // The operations of the value in terms of lane.id and group.id. A variable counts with its own size at each use.
    int64_t size = 0;
    ForEachExpr(let.value, [&](const Expr& e) {
      const Var* var = e.As<Var>();
      const auto known = var == nullptr ? sizes_.end() : sizes_.find(var->name);
      size += known == sizes_.end() ? 1 : known->second;
    });
    if (size > kLetOperationsMax) {
      return Illegal("the value of '{}' takes more than {} operations on lane.id, too many to check", let.var,
                     kLetOperationsMax);
    }
    const Expr value = Substitute(let.value, of_ids_);
    if (!IsDivergent(value) && !UsesVar(value, kGroupVar)) return Check(let.body);
    of_ids_[let.var] = value;
    sizes_[let.var] = size;
    const absl::Status status = Check(let.body);
    of_ids_.erase(let.var);
    sizes_.erase(let.var);
    return status;
  }

  // Checks that all lanes of the group get here together. Otherwise they would count commit groups differently and wait
  // for different ones.
  absl::Status CheckConvergent(std::string_view what) const {
    if (why_divergent_.empty()) return absl::OkStatus();
    return Illegal("{} where lanes of a group may diverge: inside {}", what, why_divergent_);
  }

  // The distance, in elements, of each lane's address from that of lane 0, or of each group's from that of group 0.
  // Empty if the distance depends on anything else.
  const std::vector<int64_t>& MovesOf(const Load& load) {
    return MovesOf(*load.buffer, load.indices, kLaneVar, lanes_);
  }
  const std::vector<int64_t>& MovesOf(const BufferNode& buffer, const std::vector<Expr>& indices, const std::string& id,
                                      int64_t count) {
    std::vector<Expr> places;
    for (const Expr& index : indices) places.push_back(Substitute(index, of_ids_));
    const Linear place = ToLinear(buffer, places, {{id, {0, count - 1}}});
    Linear of_id;
    for (const auto& [atom, factor] : place.terms) {
      if (UsesVar(atom, id)) of_id.Add(atom, factor);
    }
    const Expr moved = FromLinear(of_id);
    const auto [known, is_new] = moves_.try_emplace(id + " " + Print(moved));
    for (int64_t i = 0; is_new && i < count; ++i) {
      const std::optional<int64_t> value = ConstantValue(Substitute(moved, {{id, Expr(i)}}));
      if (!value.has_value()) {
        known->second.clear();
        break;
      }
      known->second.push_back(*value);
    }
    return known->second;
  }

  // A bulk copy is issued by the first lane of its group. Groups that share it must all issue the same copy.
  absl::Status CheckCopy(const Copy& copy) {
    const Load& source = *copy.source.As<Load>();
    const std::string name = copy.buffer->name;
    if (!by_first_lane_) {
      return Illegal("the bulk copy to '{}' must be issued by the first lane alone: put it inside 'if lane.id == 0'",
                     name);
    }
    if (copy.groups == 1) return absl::OkStatus();
    for (const auto& [buffer, indices] :
         {std::pair(copy.buffer, copy.indices), std::pair(source.buffer, source.indices)}) {
      const std::vector<int64_t>& moves = MovesOf(*buffer, indices, kGroupVar, groups_);
      bool same = !moves.empty();
      for (size_t group = 0; same && group < moves.size(); ++group) {
        same = moves[group] == moves[group - group % static_cast<size_t>(copy.groups)];
      }
      if (!same)
        return Illegal("the {} groups that share a copy to '{}' do not copy the same elements", copy.groups, name);
    }
    return absl::OkStatus();
  }

  // Lanes that execute one instruction together must address the elements that tensor_instruction.h assigns to them.
  absl::Status CheckMma(const Mma& mma) {
    const TensorInstructionEntry& entry = EntryOf(mma.instruction);
    if (entry.lanes == 1) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(CheckConvergent("a tensor instruction of several lanes"));
    if (lanes_ % entry.lanes != 0)
      return Illegal("{} needs {} lanes, which does not divide the {} lanes of a group", entry.name, entry.lanes,
                     lanes_);
    for (const MatrixOperand* operand : {&mma.a, &mma.b}) {
      const BufferNode& buffer = *operand->first.As<Load>()->buffer;
      if (buffer.scope == Scope::kLocal)
        return Illegal("{}: operand '{}' is local to a lane; all lanes must see it", entry.name, buffer.name);
      if (buffer.scope == Scope::kSwizzled && !entry.is_async) {
        return Illegal("{} cannot read swizzled memory, but operand '{}' is swizzled", entry.name, buffer.name);
      }
    }
    if (entry.is_async) HONE_RETURN_IF_ERROR(CheckBlocks(mma, entry));
    const std::vector<int64_t>&a = MovesOf(*mma.a.first.As<Load>()), &b = MovesOf(*mma.b.first.As<Load>());
    if (a.empty() || b.empty())
      return Illegal("{}: the distance between the operands of different lanes is not constant", entry.name);
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const int64_t first = lane / entry.lanes * entry.lanes, column = lane % kLanesOfRow;
      const auto at = [](const std::vector<int64_t>& moves, int64_t i) { return moves[static_cast<size_t>(i)]; };
      if (at(a, lane) != at(a, lane - column)) {
        return Illegal("{}: lane {} must start at the same row of a as lane {}", entry.name, lane, lane - column);
      }
      const int64_t row = lane / kLanesOfRow % kBlockRows, warp = (lane - first) / (kLanesOfRow * kBlockRows);
      const int64_t rows_before = 2 * warp * mma.a.stride + row * SharedRowStride(mma.a, entry);
      if (entry.is_async && !entry.loads_a && at(a, lane) != at(a, first) + rows_before) {
        return Illegal("{}: lane {} does not start at its row of a", entry.name, lane);
      }
      if (at(b, lane) != at(b, first) + column * entry.n * mma.b.stride) {
        return Illegal("{}: lane {} must start at column {} of b, counted from lane {}", entry.name, lane,
                       column * entry.n, first);
      }
    }
    return absl::OkStatus();
  }

  // An operand that the instruction itself reads starts in shared memory at a multiple of a chunk, as do its blocks. In
  // swizzled memory it starts in a row whose number is a multiple of eight, and its chunks follow one another in that
  // row.
  absl::Status CheckBlocks(const Mma& mma, const TensorInstructionEntry& entry) {
    for (const MatrixOperand* operand : {&mma.a, &mma.b}) {
      if (operand == &mma.a && entry.loads_a) continue;
      const Load& first = *operand->first.As<Load>();
      if (!IsShared(first.buffer->scope)) {
        return Illegal("{} reads shared memory, but operand '{}' is {}", entry.name, first.buffer->name,
                       Name(first.buffer->scope));
      }
      const bool even = operand->stride % entry.chunk == 0 && operand->column_stride % entry.chunk == 0;
      if (!even || !IsMultipleOf(*first.buffer, first.indices, entry.chunk)) {
        return Illegal("{}: the chunks of '{}' are not known to be aligned to {} elements", entry.name,
                       first.buffer->name, entry.chunk);
      }
      if (first.buffer->scope != Scope::kSwizzled) continue;
      const int64_t row = SharedRowStride(*operand, entry);
      bool whole = operand->column_stride == entry.chunk && BeginsInFirstRow(first, row, row - entry.k) &&
                   (operand == &mma.b || operand->stride == kSwizzledRows * row);
      const std::vector<int64_t>& moves = MovesOf(first);
      for (size_t lane = 0; lane < moves.size(); lane += static_cast<size_t>(entry.lanes)) {
        whole = whole && (moves[lane] - moves[0]) % (kSwizzledRows * row) == 0;
      }
      if (!whole) {
        return Illegal("{}: swizzled '{}' must be read in blocks of {} whole rows", entry.name, first.buffer->name,
                       kSwizzledRows);
      }
    }
    if (mma.b.stride == SharedRowStride(mma.b, entry)) return absl::OkStatus();
    return Illegal("{}: the columns of a block of '{}' must be contiguous: the stride must be {}, not {}", entry.name,
                   mma.b.first.As<Load>()->buffer->name, SharedRowStride(mma.b, entry), mma.b.stride);
  }

  // Whether lane 0's element lies in the first of eight rows and, within the row, at position `most` or before.
  bool BeginsInFirstRow(const Load& first, int64_t row, int64_t most) const {
    std::vector<Expr> indices;
    for (const Expr& index : first.indices) {
      indices.push_back(Substitute(Substitute(index, of_ids_), {{kLaneVar, Expr(0)}}));
    }
    Linear place = ToLinear(*first.buffer, indices, {});
    const int64_t period = kSwizzledRows * row;
    std::erase_if(place.terms, [&](const auto& term) { return IsMultipleOf(term.first * Expr(term.second), period); });
    place.constant %= period;
    const Interval within = BoundsOf(place, ranges_);
    return within.low >= 0 && within.high <= most;
  }

  // The elements of one vector access must lie in one chunk.
  absl::Status CheckSwizzled(const BufferNode& buffer, const std::vector<Expr>& indices) const {
    if (buffer.scope != Scope::kSwizzled || indices.back().type().width == 1) return absl::OkStatus();
    const int64_t width = indices.back().type().width;
    const Ramp* ramp = indices.back().As<Ramp>();
    std::vector<Expr> first = indices;
    if (ramp != nullptr) first.back() = ramp->base;
    if (ramp != nullptr && ConstantValue(ramp->stride) == 1 && width * SizeOf(buffer.dtype) <= kSwizzledChunkBytes &&
        IsMultipleOf(buffer, first, width)) {
      return absl::OkStatus();
    }
    return Illegal(
        "{} elements of swizzled '{}' are accessed at once, but are not known to lie in one chunk of {} bytes", width,
        buffer.name, kSwizzledChunkBytes);
  }

  absl::Status CheckSwizzled(const Stmt& s) const {
    absl::Status status;
    const auto check = [&](const BufferNode& buffer, const std::vector<Expr>& indices) {
      if (status.ok()) status = CheckSwizzled(buffer, indices);
    };
    if (const Store* store = s.As<Store>()) check(*store->buffer, store->indices);
    ForEachOwnLoad(s, [&](const Load& load) { check(*load.buffer, load.indices); });
    return status;
  }

  // A lane reduction is a butterfly of shuffles, so part p of it must be in lane p of each run of lanes.
  absl::Status CheckLaneReduce(const LaneReduce& reduce) const {
    HONE_RETURN_IF_ERROR(CheckConvergent("a lane reduction ('merge')"));
    if (lanes_ % reduce.parts != 0)
      return Illegal("a lane reduction has {} parts, which does not divide the {} lanes of a group", reduce.parts,
                     lanes_);
    const Expr part = Substitute(reduce.part, of_ids_);
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const std::optional<int64_t> own = ConstantValue(Substitute(part, {{kLaneVar, Expr(lane)}}));
      if (own == lane % reduce.parts) continue;
      return Illegal("in a lane reduction of {} parts, lane {} has part {}; it must have part {}", reduce.parts, lane,
                     own.has_value() ? fmt::format("{}", *own) : Shortened(reduce.part), lane % reduce.parts);
    }
    return absl::OkStatus();
  }

  // Checks `s`. divergent: lanes diverge before it, for the given reason. first_lane: only the first lane of the group
  // executes it.
  absl::Status CheckApart(const Stmt& s, bool divergent, const std::string& reason, bool first_lane = false) {
    const std::string before = why_divergent_;
    if (divergent && why_divergent_.empty()) why_divergent_ = reason;
    const bool by_first_lane = std::exchange(by_first_lane_, first_lane || (by_first_lane_ && !divergent));
    const absl::Status status = Check(s);
    by_first_lane_ = by_first_lane;
    why_divergent_ = before;
    return status;
  }

  absl::Status CheckFor(const For& loop) {
    if (loop.kind == LoopKind::kParallel || loop.kind == LoopKind::kGroup || loop.kind == LoopKind::kLane) {
      return Illegal("loop '{}' is {}, which is not allowed in a func with a grid", loop.var,
                     loop.kind == LoopKind::kParallel ? "parallel" : "bound");
    }
    ranges_[loop.var] = {0, std::max<int64_t>(BoundsOf(loop.extent, ranges_).high, 1) - 1};
    const absl::Status status = CheckApart(loop.body, IsDivergent(loop.extent),
                                           fmt::format("loop '{}' with extent {}", loop.var, Shortened(loop.extent)));
    ranges_.erase(loop.var);
    return status;
  }

  absl::Status CheckIf(const If& branch) {
    const bool divergent = IsDivergent(branch.condition);
    const std::string reason = "'if " + Shortened(branch.condition) + "'";
    const bool first_lane = why_divergent_.empty() && Equal(branch.condition, Equals(MakeVar(kLaneVar), Expr(0)));
    HONE_RETURN_IF_ERROR(CheckApart(branch.then_case, divergent, reason, first_lane));
    return branch.else_case.defined() ? CheckApart(branch.else_case, divergent, reason) : absl::OkStatus();
  }

  absl::Status CheckAlloc(const Alloc& alloc) {
    const BufferNode& buffer = *alloc.buffer;
    if (buffer.scope == Scope::kWorkspace) {
      return Illegal("alloc of '{}' in the workspace, inside a func with a grid; make it a param", buffer.name);
    }
    if (!IsShared(buffer.scope)) return Check(alloc.body);
    if (!why_divergent_.empty()) {
      return Illegal("alloc of shared '{}' where lanes of a group may diverge: inside {}", buffer.name, why_divergent_);
    }
    const int swizzled = buffer.scope == Scope::kSwizzled ? 1 : 0;
    if (swizzled > 0 && NumBytes(buffer) % (kSwizzledRowBytes * kSwizzledRows) != 0) {
      return Illegal("swizzled '{}' has {} bytes; it needs a multiple of {} rows of {} bytes", buffer.name,
                     NumBytes(buffer), kSwizzledRows, kSwizzledRowBytes);
    }
    // Back ends never let two shared buffers overlap, because no barrier separates the last reader of one from the
    // first writer of the other. An unrolled loop has one buffer for all its iterations, so it counts once.
    if (counted_.insert(&buffer).second) shared_bytes_ += PaddedSharedBytes(NumBytes(buffer));
    if (shared_bytes_ > limits_.shared_bytes) {
      return Illegal("alloc of '{}' raises the shared memory of a group to {} bytes; the target has {}", buffer.name,
                     shared_bytes_, limits_.shared_bytes);
    }
    swizzled_ += swizzled;
    const absl::Status status = Check(alloc.body);
    swizzled_ -= swizzled;
    return status;
  }

  const GridLimits limits_;
  int64_t lanes_ = 1, groups_ = 1;
  int64_t sharing_ = 1;         // how many groups share copies; 1: none do
  bool by_first_lane_ = false;  // only the group's first lane gets here, and no other condition decides whether it does
  int swizzled_ = 0;            // swizzled buffers whose Alloc encloses the current statement
  Ranges ranges_;               // the ranges of loop variables
  VarMap of_ids_;  // the variables that may differ between lanes or groups, in terms of lane.id and group.id
  std::map<std::string, int64_t, std::less<>> sizes_;               // sizes of the values in of_ids_
  std::map<std::string, std::vector<int64_t>, std::less<>> moves_;  // cache of MovesOf
  std::string why_divergent_;            // why lanes of a group may diverge here; empty: they do not
  std::set<const BufferNode*> counted_;  // buffers that shared_bytes_ includes
  int64_t shared_bytes_ = 0;
};

}  // namespace

absl::Status VerifyGrid(const Func& func, const GridLimits& limits) { return GridVerifier(limits).Run(func); }

}  // namespace hone::ir

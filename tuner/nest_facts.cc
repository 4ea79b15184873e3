// SPDX-License-Identifier: Apache-2.0
#include "tuner/nest_facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/ir/match.h"
#include "tuner/index_code.h"

namespace hone::tuner {
namespace {

using schedule::Loop;
using schedule::Nest;
using schedule::State;

constexpr double kLineBytes = 64;

// The cost of a call in vector instructions, approximately.
double CostOf(ir::Intrinsic function) {
  switch (function) {
    case ir::Intrinsic::kExp:
      return 12;
    case ir::Intrinsic::kLog:
      return 14;
    case ir::Intrinsic::kTanh:
    case ir::Intrinsic::kSigmoid:
      return 16;
    case ir::Intrinsic::kErf:
      return 20;
    case ir::Intrinsic::kPow:
      return 32;
    case ir::Intrinsic::kIsNan:
    case ir::Intrinsic::kIsInf:
    case ir::Intrinsic::kFma:
      return 1;
    case ir::Intrinsic::kReinterpret:
      return 0;
    default:
      return 24;
  }
}

double CostOf(const ir::Binary& n) {
  const bool divides = n.op == ir::BinaryOp::kDiv || n.op == ir::BinaryOp::kMod || n.op == ir::BinaryOp::kFloorDiv ||
                       n.op == ir::BinaryOp::kFloorMod;
  return divides ? (ir::IsFloat(n.a.type().dtype) ? 5 : 20) : 1;
}

// The weighted number of vector instructions of a value, without its index arithmetic.
double CountOperations(const ir::Expr& e) {
  double own = 0;
  bool descend = true;
  ir::Match(
      e, [&](const ir::Load&) { descend = false; }, [&](const ir::Binary& n) { own = CostOf(n); },
      [&](const ir::Unary& n) { own = n.op == ir::UnaryOp::kSqrt ? 6 : 1; },
      [&](const ir::Call& n) { own = CostOf(n.function); }, [&](const ir::Select&) { own = 1; },
      [&](const ir::Cast&) { own = 0.5; }, [](const auto&) {});
  if (descend) ir::ForEachChild(e, [&](const ir::Expr& child) { own += CountOperations(child); });
  return own;
}

bool IsProduct(const ir::Expr& e) {
  const ir::Binary* binary = e.As<ir::Binary>();
  return binary != nullptr && binary->op == ir::BinaryOp::kMul && ir::IsFloat(e.type().dtype);
}

class Analyzer {
 public:
  // sizes: a value for every open size.
  Analyzer(const State& state, const Nest& nest, const target::Target& target, const ir::VarMap& sizes)
      : state_(state), nest_(nest), target_(target), sizes_(sizes) {
    facts_.nest = &nest;
  }

  NestFacts Run() {
    CollectLoops(nest_, true);
    CompileBindings();
    AverageExtents();
    CountWork();
    ir::ForEachExpr(nest_.stage.value, [&](const ir::Expr& e) {
      if (const ir::Load* load = e.As<ir::Load>()) AddLoad(*load);
    });
    AddAccess(nest_.stage.buffer, AxisVars(), true);
    FindTile();
    return std::move(facts_);
  }

 private:
  // The expression with the values of open sizes.
  ir::Expr AtSizes(const ir::Expr& e) const { return sizes_.empty() ? e : ir::Substitute(e, sizes_); }
  int64_t Extent(const ir::Size& size) const {
    return size.IsFixed() ? size.value() : IndexCode(AtSizes(ir::Expr(size)), {}).Evaluate({});
  }
  // The most iterations of a loop inside those that slots_ names.
  int64_t Length(const Loop& loop) const {
    if (sizes_.empty() || loop.extent.As<ir::IntImm>() != nullptr) return loop.max_extent;
    const std::vector<int64_t> first(slots_.size(), 0);
    return std::clamp<int64_t>(IndexCode(AtSizes(loop.extent), slots_).Evaluate(first), 0, loop.max_extent);
  }

  // Adds the loops around the place of the nest, then its own. own: the nest is the analyzed one, not one around it.
  void CollectLoops(const Nest& nest, bool own) {
    size_t end = nest.loops.size();
    if (!own) {
      const auto at = std::find_if(nest.loops.begin(), nest.loops.end(), [&](const Loop& l) { return l.name == at_; });
      end = static_cast<size_t>(at - nest.loops.begin()) + (at == nest.loops.end() ? 0 : 1);
    }
    if (!nest.IsTopLevel()) {
      at_ = nest.place.loop;
      if (const Nest* around = state_.FindNest(nest.place.stage)) CollectLoops(*around, false);
    }
    for (size_t i = 0; i < end; ++i) {
      const Loop& loop = nest.loops[i];
      // A reduction loop of an outer nest only repeats this one, so it does not count as reducing here.
      // A lane loop around a nest in shared memory counts as one iteration: all lanes of a group fill it together.
      const bool together = !own && ir::IsShared(nest_.storage.scope) && loop.kind == ir::LoopKind::kLane;
      // A sort has each value once, not once per place.
      const bool places = own && nest_.stage.reduction == ir::Reduction::kOrder && i + 2 == nest.loops.size();
      const int64_t extent = together || places ? 1 : Length(loop);
      facts_.loops.push_back({static_cast<double>(extent), std::max<int64_t>(extent, 1), loop.kind, loop.reduce && own,
                              own, own && i + nest.StatementLoops() >= nest.loops.size()});
      extents_.push_back(together || places ? ir::Expr(1) : AtSizes(loop.extent));
      slots_.push_back(loop.name);
    }
  }

  void CompileBindings() {
    const auto add = [&](const ir::Axis& axis) {
      const auto binding = nest_.bindings.find(axis.name);
      bindings_.emplace_back(binding == nest_.bindings.end() ? ir::Expr(0) : AtSizes(binding->second), slots_);
      axes_.push_back(axis.name);
    };
    for (const ir::Axis& axis : nest_.stage.axes) add(axis);
    for (const ir::Axis& axis : nest_.stage.reduce_axes) add(axis);
  }

  // The values of the axes, then of the loops, if `loop` is at `value` and all other loops at 0. A `loop` beyond the
  // last means that all are at 0.
  std::vector<int64_t> At(size_t loop, int64_t value) const {
    std::vector<int64_t> loops(slots_.size(), 0);
    if (loop < loops.size()) loops[loop] = value;
    std::vector<int64_t> result;
    result.reserve(bindings_.size() + loops.size());
    for (const IndexCode& binding : bindings_) result.push_back(binding.Evaluate(loops));
    result.insert(result.end(), loops.begin(), loops.end());
    return result;
  }

  // Averages the extent of peeled loops, which depends on the loop over tiles: all tiles are full but the last.
  void AverageExtents() {
    for (size_t i = 0; i < extents_.size(); ++i) {
      LoopFacts& loop = facts_.loops[i];
      if (extents_[i].As<ir::IntImm>() != nullptr) continue;
      const IndexCode code(extents_[i], slots_);
      std::vector<int64_t> last(slots_.size(), 0);
      const double full = static_cast<double>(code.Evaluate(last));
      double tiles = 1;
      for (size_t o = 0; o < i; ++o) {
        if (!ir::UsesVar(extents_[i], slots_[o])) continue;
        last[o] = facts_.loops[o].length - 1;
        tiles *= static_cast<double>(facts_.loops[o].length);
      }
      const double tail = static_cast<double>(code.Evaluate(last));
      loop.extent = std::clamp((full * (tiles - 1) + tail) / tiles, 0.0, static_cast<double>(loop.length));
    }
  }

  void CountWork() {
    facts_.stored_bytes = ir::SizeOf(nest_.stage.buffer->dtype);
    for (const ir::Size& extent : schedule::StoredShape(state_, nest_)) {
      facts_.stored_bytes *= static_cast<double>(Extent(extent));
    }
    for (const LoopFacts& loop : facts_.loops) facts_.executed *= loop.extent;
    const std::vector<ir::Axis>& axes = nest_.stage.axes;
    const size_t places = nest_.stage.reduction == ir::Reduction::kOrder ? 1 : 0;
    for (size_t d = 0; d + places < axes.size(); ++d) facts_.useful *= static_cast<double>(Extent(axes[d].extent));
    for (const ir::Axis& axis : nest_.stage.reduce_axes) facts_.useful *= static_cast<double>(Extent(axis.extent));
    facts_.operations = CountOperations(nest_.stage.value);
    facts_.flops = facts_.operations;
    if (nest_.stage.reduction != ir::Reduction::kNone) {
      const bool fused = nest_.stage.reduction == ir::Reduction::kSum && IsProduct(nest_.stage.value);
      facts_.operations += fused ? 0 : 1;
      facts_.flops += 1;
    }
    if (nest_.instruction.has_value()) {
      facts_.operations = 1;
      facts_.flops = 2;
    }
    facts_.width = target_.VectorWidth(ir::SizeOf(nest_.stage.buffer->dtype));
    facts_.guards = static_cast<double>(nest_.conditions.guards.size());
    for (const ir::Expr& guard : nest_.conditions.guards) {
      for (size_t i = 0; i < slots_.size(); ++i) {
        if (facts_.loops[i].kind != ir::LoopKind::kVectorized || !ir::UsesVar(guard, slots_[i])) continue;
        facts_.vector_guards += 1;
        break;
      }
    }
  }

  std::vector<ir::Expr> AxisVars() const {
    std::vector<ir::Expr> vars;
    for (const ir::Axis& axis : nest_.stage.axes) vars.push_back(ir::MakeVar(axis.name));
    return vars;
  }

  void AddLoad(const ir::Load& load) {
    for (const ir::Load* seen : seen_) {
      if (seen->buffer != load.buffer) continue;
      bool same = true;
      for (size_t d = 0; d < load.indices.size() && same; ++d) same = ir::Equal(seen->indices[d], load.indices[d]);
      if (same) return;
    }
    seen_.push_back(&load);
    AddAccess(load.buffer, load.indices, false);
  }

  void AddAccess(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, bool store) {
    const Nest* producer = state_.FindNest(buffer.get());
    Slots names = axes_;
    names.insert(names.end(), slots_.begin(), slots_.end());
    Access access;
    access.buffer = buffer.get();
    access.element_bytes = ir::SizeOf(buffer->dtype);
    access.store = store;
    access.local = producer != nullptr && !producer->IsTopLevel();
    access.shared = access.local && ir::IsShared(producer->storage.scope);
    std::vector<IndexCode> codes;
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool moved = access.local && d < producer->storage.origin.size();
      codes.emplace_back(AtSizes(moved ? indices[d] - producer->storage.origin[d] : indices[d]), names);
      access.irregular |= codes.back().irregular();
    }
    std::vector<int64_t> stored;
    for (const ir::Size& extent : producer != nullptr ? producer->storage.shape : buffer->shape) {
      stored.push_back(Extent(extent));
    }
    if (access.local && !stored.empty()) stored.back() += producer->storage.pad;
    Measure(codes, stored, access);
    for (size_t i = 0; i < facts_.depth(); ++i) {  // neighbouring lanes differ in the innermost lane loop
      if (facts_.loops[i].kind == ir::LoopKind::kLane && facts_.loops[i].length > 1)
        access.lane_stride = access.stride[i];
    }
    facts_.accesses.push_back(std::move(access));
  }

  // Sets strides, elements and lines of the access. Moves each loop alone from its first value to its second and its
  // last, and evaluates the address.
  void Measure(const std::vector<IndexCode>& codes, const std::vector<int64_t>& shape, Access& access) const {
    const size_t depth = slots_.size(), rank = codes.size();
    std::vector<double> row(rank, 1);  // per dimension: elements between neighbours
    for (size_t d = rank; d-- > 1;) row[d - 1] = row[d] * static_cast<double>(shape[d]);
    const std::vector<int64_t> start = At(depth, 0);
    std::vector<double> reach(rank, 1);  // per dimension: indices that the loops so far cover
    access.stride.assign(depth, 0);
    access.elements.assign(depth + 1, 1);
    access.lines.assign(depth + 1, 1);
    for (size_t i = depth; i-- > 0;) {
      const LoopFacts& loop = facts_.loops[i];
      if (loop.length > 1) {
        const std::vector<int64_t> second = At(i, 1), last = At(i, loop.length - 1);
        for (size_t d = 0; d < rank; ++d) {
          const int64_t origin = codes[d].Evaluate(start);
          access.stride[i] += static_cast<double>(codes[d].Evaluate(second) - origin) * row[d];
          const double span = std::abs(static_cast<double>(codes[d].Evaluate(last) - origin));
          reach[d] = std::min(reach[d] + span, std::max(1.0, static_cast<double>(shape[d])));
        }
        // The address of a gather is unknown, so each iteration counts as a new cache line.
        if (access.irregular && access.stride[i] == 0) access.stride[i] = kLineBytes;
      }
      Cover(shape, reach, i, access);
    }
  }

  // Sets elements and lines at depth i to those of the box that the loops inside cover.
  void Cover(const std::vector<int64_t>& shape, const std::vector<double>& reach, size_t i, Access& access) const {
    double elements = 1, run = 1;  // run: consecutive elements in memory
    bool contiguous = true;
    for (size_t d = reach.size(); d-- > 0;) {
      elements *= reach[d];
      if (contiguous) run *= reach[d];
      contiguous &= reach[d] >= static_cast<double>(shape[d]);
    }
    if (access.irregular) elements = std::max(elements, access.elements[i + 1] * facts_.loops[i].extent);
    access.elements[i] = elements;
    access.lines[i] = elements / run * std::ceil(run * access.element_bytes / kLineBytes);
    if (access.irregular) access.lines[i] = elements;
  }

  void FindTile() {
    TileFacts& tile = facts_.tile;
    tile.begin = facts_.depth();
    while (tile.begin > 0) {
      const LoopFacts& loop = facts_.loops[tile.begin - 1];
      const bool straight =
          loop.kind == ir::LoopKind::kUnrolled || loop.kind == ir::LoopKind::kVectorized || loop.statement;
      if (!straight && loop.length != 1) break;
      --tile.begin;
    }
    for (size_t i = tile.begin; i < facts_.depth(); ++i) {
      const LoopFacts& loop = facts_.loops[i];
      const double count = Chunks(loop);
      tile.vectors *= count;
      (loop.reduce ? tile.reduce_steps : tile.outputs) *= count;
      tile.vectorized |= loop.statement;
      if (loop.kind != ir::LoopKind::kVectorized || loop.length == 1) continue;
      tile.vectorized = true;
      tile.vector_used = loop.extent / (count * facts_.width);
    }
    for (const Access& access : facts_.accesses) {
      if (!access.store && (!access.local || access.shared)) CountLoads(access);
    }
  }

  double Chunks(const LoopFacts& loop) const {
    if (loop.statement) return 1;
    return loop.kind == ir::LoopKind::kVectorized ? std::ceil(loop.extent / facts_.width) : loop.extent;
  }

  void CountLoads(const Access& access) {
    double loads = 1;
    bool gathers = false;
    for (size_t i = facts_.tile.begin; i < facts_.depth(); ++i) {
      const LoopFacts& loop = facts_.loops[i];
      if (access.stride[i] == 0 || loop.length == 1) continue;
      const bool gather = loop.kind == ir::LoopKind::kVectorized && std::abs(access.stride[i]) != 1;
      gathers |= gather;
      loads *= gather ? loop.extent : Chunks(loop);
    }
    facts_.tile.loads += loads;
    if (gathers) facts_.tile.gathers += loads;
  }

  const State& state_;
  const Nest& nest_;
  const target::Target& target_;
  const ir::VarMap& sizes_;
  NestFacts facts_;
  std::string at_;                     // while collecting loops: the loop at which the inner nest is computed
  std::vector<ir::Expr> extents_;      // of the loops
  Slots slots_, axes_;                 // names of the loops and of the axes
  std::vector<IndexCode> bindings_;    // values of the axes by those of the loops
  std::vector<const ir::Load*> seen_;  // loads with an access, to count equal ones once
};

}  // namespace

double NestFacts::WorkingSet(size_t d) const {
  double bytes = 0;
  for (const Access& access : accesses) {
    if (!access.local) bytes += access.lines[d] * kLineBytes;
  }
  return bytes;
}

double NestFacts::Trips(size_t d) const {
  double trips = 1;
  for (size_t i = 0; i < d; ++i) trips *= loops[i].extent;
  return trips;
}

std::vector<NestFacts> AnalyzeNests(const schedule::State& state, const target::Target& target,
                                    const SizePoint& point) {
  ir::VarMap sizes;
  for (const NamedSize& size : point) sizes[size.name] = ir::Expr(size.value);
  for (const ir::OpenSize& size : state.sizes) sizes.try_emplace(size.name, ir::Expr(size.max));
  const std::vector<schedule::Grid> grids = schedule::Grids(state);
  std::vector<NestFacts> facts;
  for (const schedule::Nest& nest : state.nests) {
    if (nest.prepared) continue;
    facts.push_back(Analyzer(state, nest, target, sizes).Run());
    facts.back().launch = *std::ranges::find(grids, &schedule::TopLevelNestOf(state, nest), &schedule::Grid::root);
  }
  return facts;
}

}  // namespace hone::tuner

// SPDX-License-Identifier: Apache-2.0
#include "tuner/features.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"
#include "tuner/analytic_model.h"
#include "tuner/nest_facts.h"

namespace hone::tuner {
namespace {

constexpr size_t kNests = 2;       // nests with features of their own, the most expensive first
constexpr size_t kAccesses = 4;    // accesses of such a nest with features of their own, most traffic first
constexpr size_t kPerAccess = 17;  // features of an access
constexpr size_t kPerNest = 48 + kAccesses * kPerAccess;
constexpr size_t kWhole = 17;  // features of the whole kernel

class FeatureWriter {
 public:
  explicit FeatureWriter(size_t capacity) { out_.reserve(capacity); }

  void Log(double x) { out_.push_back(static_cast<float>(std::log2(1 + std::max(0.0, x)))); }
  void Plain(double x) { out_.push_back(static_cast<float>(x)); }
  void Flag(bool x) { out_.push_back(x ? 1.0F : 0.0F); }
  void PadTo(size_t size) {
    HONE_CHECK(out_.size() <= size);
    out_.resize(size, 0.0F);
  }
  size_t size() const { return out_.size(); }
  Features Take() { return std::move(out_); }

 private:
  Features out_;
};

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

// The smallest depth inside which all touched data fits a cache of `bytes` bytes.
size_t FittingDepth(const NestFacts& facts, double bytes) {
  size_t d = facts.depth();
  while (d > 0 && facts.WorkingSet(d - 1) <= bytes) --d;
  return d;
}

// The most words of one bank of shared memory that neighbouring lanes access at a time; 1: there is no conflict.
double BankConflicts(const Access& access) {
  constexpr int64_t kBanks = 32, kBankBytes = 4;
  if (!access.shared) return 1;
  const auto stride = static_cast<int64_t>(std::abs(access.lane_stride) * access.element_bytes) / kBankBytes;
  return stride == 0 ? 1 : static_cast<double>(std::gcd(stride, kBanks));
}

void WriteAccess(const NestFacts& facts, const Access& access, FeatureWriter& out) {
  const size_t tile = facts.tile.begin;
  double vector_stride = 0, innermost = 0;
  for (size_t i = facts.depth(); i-- > 0;) {
    if (facts.loops[i].length == 1) continue;
    if (innermost == 0) innermost = access.stride[i];
    if (facts.loops[i].kind == ir::LoopKind::kVectorized) vector_stride = access.stride[i];
  }
  // Reuse from cache: iterations of the loops directly outside the tile that do not move the access.
  double reuse = 1;
  for (size_t i = tile; i-- > 0 && access.stride[i] == 0;) reuse *= facts.loops[i].extent;
  out.Log(access.Bytes(0));
  out.Log(access.lines[0]);
  out.Log(access.Bytes(tile));
  out.Log(access.lines[tile]);
  out.Log(Ratio(facts.executed, access.elements[0]));
  out.Log(reuse);
  out.Log(std::abs(vector_stride));
  out.Log(std::abs(innermost));
  out.Flag(vector_stride == 1);
  out.Flag(access.store);
  out.Flag(access.local);
  out.Flag(access.shared);
  out.Log(std::abs(access.lane_stride));
  out.Flag(std::abs(access.lane_stride) <= 1);  // lanes access the same element, or consecutive ones
  out.Log(BankConflicts(access));
  out.Flag(access.irregular);
  out.Plain(access.element_bytes);
}

void WriteLoops(const NestFacts& facts, FeatureWriter& out) {
  double parallel = 1, unrolled = 1, vectorized = 1, serial = 1, outer_reduce = 1, inner_serial = 1, loops = 0;
  for (const LoopFacts& loop : facts.loops) {
    loops += loop.length > 1 ? 1 : 0;
    if (loop.statement) {
      vectorized *= loop.extent;
      continue;
    }
    switch (loop.kind) {
      case ir::LoopKind::kParallel:
      case ir::LoopKind::kGroup:
      case ir::LoopKind::kLane:
        parallel *= loop.extent;
        break;
      case ir::LoopKind::kUnrolled:
        unrolled *= loop.extent;
        break;
      case ir::LoopKind::kVectorized:
        vectorized *= loop.extent;
        break;
      case ir::LoopKind::kSerial:
        serial *= loop.extent;
        if (loop.reduce) outer_reduce *= loop.extent;
        if (loop.length > 1) inner_serial = loop.extent;
        break;
    }
  }
  out.Log(parallel);
  out.Log(unrolled);
  out.Log(vectorized);
  out.Log(serial);
  out.Log(outer_reduce);
  out.Log(inner_serial);
  out.Plain(loops);
}

void WriteLaunch(const NestFacts& facts, const target::Target& target, FeatureWriter& out) {
  const schedule::Grid& launch = facts.launch;
  out.Log(static_cast<double>(launch.groups));
  out.Log(static_cast<double>(launch.lanes));
  out.Log(static_cast<double>(launch.shared_bytes));
  out.Plain(
      std::min(1.0, Ratio(static_cast<double>(launch.groups), target.hierarchy.units)));  // share of units with a group
}

void WriteTile(const NestFacts& facts, const NestCost& cost, const target::Target& target, FeatureWriter& out) {
  const TileFacts& tile = facts.tile;
  out.Log(tile.vectors);
  out.Log(tile.outputs);
  out.Log(tile.reduce_steps);
  out.Log(tile.loads);
  out.Log(tile.gathers);
  out.Plain(std::min(8.0, Ratio(tile.loads, tile.vectors)));
  out.Plain(tile.vector_used);
  out.Flag(tile.vectorized);
  out.Plain(std::min(4.0, cost.registers / target.vector_registers));
  out.Log(std::max(0.0, cost.registers - target.vector_registers));
  out.Log(tile.vectors * std::max(1.0, facts.operations));  // instructions of the tile's code
}

// For each cache: the working set of the inner loops that fit it, that of one loop more, and how often they run.
void WriteCaches(const NestFacts& facts, const target::Target& target, FeatureWriter& out) {
  const double caches[] = {static_cast<double>(target.memory.l1_bytes), static_cast<double>(target.memory.l2_bytes),
                           static_cast<double>(target.memory.l3_bytes)};
  for (const double bytes : caches) {
    const size_t d = FittingDepth(facts, bytes);
    out.Log(facts.Trips(d));
    out.Plain(Ratio(facts.WorkingSet(d), bytes));
    out.Plain(d == 0 ? 0 : std::min(16.0, Ratio(facts.WorkingSet(d - 1), bytes)));
  }
  // The working set of the innermost loop outside the tile: the data that the tile's reduction streams.
  const size_t inner = facts.tile.begin > 0 ? facts.tile.begin - 1 : 0;
  out.Log(facts.WorkingSet(inner));
  out.Plain(std::min(16.0, Ratio(facts.WorkingSet(inner), caches[0])));
}

void WriteNest(const NestFacts& facts, const NestCost& cost, const target::Target& target, FeatureWriter& out) {
  out.Log(facts.executed);
  out.Log(facts.executed * facts.flops);
  out.Plain(std::min(8.0, Ratio(facts.executed, facts.useful)));
  out.Plain(facts.operations);
  out.Plain(facts.guards);
  out.Plain(facts.vector_guards);
  out.Flag(facts.nest->stage.reduction != ir::Reduction::kNone);
  WriteLoops(facts, out);
  WriteLaunch(facts, target, out);
  WriteTile(facts, cost, target, out);
  WriteCaches(facts, target, out);
  for (const double seconds : {cost.compute, cost.l2, cost.l3, cost.memory}) out.Plain(Ratio(seconds, cost.total));
  out.Log(cost.total * 1e9);
  out.Plain(cost.balance);
  out.Plain(Ratio(cost.threads, target.threads));
  out.Log(cost.dispatch * 1e9);

  std::vector<const Access*> accesses;
  for (const Access& access : facts.accesses) accesses.push_back(&access);
  const size_t tile = facts.tile.begin;
  std::stable_sort(accesses.begin(), accesses.end(), [&](const Access* a, const Access* b) {
    if (a->local != b->local) return b->local;
    return a->lines[tile] > b->lines[tile];
  });
  for (size_t i = 0; i < std::min(kAccesses, accesses.size()); ++i) WriteAccess(facts, *accesses[i], out);
}

// The kLaneFeatures, one set for all nests: how far asynchronous copies and tensor instructions overlap, and how many
// groups share a copy.
void WriteOverlap(const schedule::State& state, FeatureWriter& out) {
  int64_t buffers = 1, running = 0, copied = 0, groups = 1, outputs = 0, steps = 0;
  bool by_group = false, merged = false;
  for (const schedule::Nest& nest : state.nests) {
    for (const schedule::Loop& loop : nest.loops) {
      buffers = std::max(buffers, loop.buffers);
      running = std::max(running, loop.async_iterations);
    }
    copied = std::max(copied, nest.copy.elements);
    groups = std::max(groups, nest.copy.groups);
    by_group |= nest.IsBulkCopied();
    merged |= nest.LaneReduceLoop() != nullptr;
    if (!nest.instruction.has_value()) continue;
    const ir::TensorInstructionEntry& entry = ir::EntryOf(*nest.instruction);
    outputs = entry.m * entry.n * entry.lanes;
    steps = entry.k;
  }
  for (const int64_t count : {buffers, running, copied, groups, outputs, steps}) out.Log(static_cast<double>(count));
  out.Flag(by_group);
  out.Flag(merged);
}

struct Totals {
  double flops = 0, useful_flops = 0, bytes = 0, workspace = 0, packed = 0, local = 0, code = 0, dispatch = 0;
  double l2 = 0, l3 = 0, memory = 0;
};

Totals Sum(const schedule::State& state, const std::vector<NestFacts>& nests, const std::vector<NestCost>& costs) {
  Totals t;
  for (size_t i = 0; i < nests.size(); ++i) {
    const NestFacts& facts = nests[i];
    t.flops += facts.executed * facts.flops;
    t.useful_flops += facts.useful * facts.flops;
    t.code += facts.tile.vectors * std::max(1.0, facts.operations);
    t.dispatch += costs[i].dispatch;
    t.l2 += costs[i].l2_bytes;
    t.l3 += costs[i].l3_bytes;
    t.memory += costs[i].memory_bytes;
    for (const Access& access : facts.accesses) t.bytes += access.local ? 0 : access.Bytes(0);
    const bool output = state.IsOutput(facts.nest->stage.buffer.get());
    if (facts.nest->IsTopLevel() && !output) t.workspace += facts.stored_bytes;
    if (!facts.nest->IsTopLevel()) t.local += facts.stored_bytes;
  }
  for (const schedule::Nest& nest : state.nests) {
    if (nest.prepared) t.packed += static_cast<double>(ir::NumBytes(*nest.stage.buffer));
  }
  return t;
}

Features FeaturesAt(const schedule::State& state, const target::Target& target, const SizePoint& point) {
  const std::vector<NestFacts> nests = AnalyzeNests(state, target, point);
  std::vector<NestCost> costs;
  for (const NestFacts& facts : nests) costs.push_back(PredictNest(facts, target));
  const double seconds = PredictSeconds(costs);
  const Totals t = Sum(state, nests, costs);

  FeatureWriter out(kFeatureCount + kLaneFeatures);
  out.Plain(std::log(seconds));
  out.Log(t.flops);
  out.Plain(std::min(8.0, Ratio(t.flops, t.useful_flops)));
  out.Log(t.bytes);
  out.Log(Ratio(t.flops, t.bytes));
  for (const double bytes : {t.l2, t.l3, t.memory, t.workspace, t.packed, t.local}) out.Log(bytes);
  out.Log(t.code);
  out.Log(t.dispatch * 1e9);
  out.Plain(static_cast<double>(nests.size()));
  out.Plain(target.threads);
  out.Plain(target.vector_bits / 128.0);
  out.Log(LowerBoundSeconds(t.useful_flops, t.bytes, target) * 1e9);
  out.PadTo(kWhole);

  std::vector<size_t> order(nests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a].total > costs[b].total; });
  for (size_t n = 0; n < kNests; ++n) {
    if (n < order.size()) WriteNest(nests[order[n]], costs[order[n]], target, out);
    out.PadTo(kWhole + (n + 1) * kPerNest);
  }
  if (target.facts().has_grid) WriteOverlap(state, out);
  return out.Take();
}

}  // namespace

const size_t kFeatureCount = kWhole + kNests * kPerNest;

Features ExtractFeatures(const schedule::State& state, const target::Target& target,
                         std::span<const SizePoint> points) {
  if (points.size() < 2) return FeaturesAt(state, target, points.empty() ? SizePoint() : points[0]);
  Features mean;
  double seconds = 0;
  for (const SizePoint& point : points) {
    const Features features = FeaturesAt(state, target, point);
    seconds += std::exp(features[kAnalyticLogSeconds]);
    mean.resize(features.size());
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += features[i] / static_cast<float>(points.size());
  }
  mean[kAnalyticLogSeconds] = static_cast<float>(std::log(seconds));
  return mean;
}

}  // namespace hone::tuner

// SPDX-License-Identifier: Apache-2.0
#include "tuner/analytic_model.h"

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

constexpr double kDispatchSeconds = 2e-6;  // starting and joining one parallel loop
constexpr double kChunkSeconds = 5e-8;     // handing one iteration to a thread
constexpr double kLoopCycles = 1.5;        // overhead of one iteration of a loop that is not unrolled
constexpr double kCacheLineBytes = 64;

// Cycles of one run of the tile's straight-line code.
double TileCycles(const NestFacts& facts, const target::Target& target, NestCost& cost) {
  const TileFacts& tile = facts.tile;
  const target::Core& core = target.core;
  const bool reduces = facts.nest->stage.reduction != ir::Reduction::kNone;
  const double arithmetic = tile.vectors * std::max(facts.operations, 0.25) / core.multiply_adds;
  double moves = tile.loads + tile.gathers;  // a gathered element costs a load and its insertion into the vector
  // A top-level nest accumulates in memory. Other accumulators are in registers, as far as these suffice.
  const bool in_registers = reduces && !facts.nest->IsTopLevel();
  cost.registers = (reduces ? tile.outputs : 1) + 2 + std::min(4.0, tile.loads);
  const double spilled = std::max(0.0, cost.registers - target.vector_registers);
  if (reduces && !in_registers) moves += 2 * tile.outputs;
  moves += 2 * std::min(spilled, tile.outputs) * tile.reduce_steps;
  if (!reduces) moves += tile.vectors;  // the store
  const double chain = reduces ? core.latency * tile.reduce_steps : 0;
  const double guards = facts.guards > facts.vector_guards ? 1.0 : 0.0;
  return std::max({arithmetic, moves / core.loads, chain}) + kLoopCycles + guards +
         0.25 * facts.vector_guards * tile.vectors;
}

// Bytes that are moved into and out of a cache of `bytes` bytes. The inner loops whose data fits the cache run from it;
// every iteration of a loop around them that moves an access fills it again. *lines: the moved cache lines that are not
// sequential in memory.
double Traffic(const NestFacts& facts, double bytes, double* lines) {
  size_t fits = facts.depth();
  while (fits > 0 && facts.WorkingSet(fits - 1) <= bytes) --fits;
  double traffic = 0;
  *lines = 0;
  for (const Access& access : facts.accesses) {
    if (access.local) continue;
    size_t outer = fits;
    while (outer > 0 && access.stride[outer - 1] == 0) --outer;  // the next iteration finds the data in the cache
    const double fills = facts.Trips(outer);
    const double moved = access.lines[fits] * fills;
    traffic += moved * kCacheLineBytes * (access.store ? 2 : 1);
    const double sequential = std::max(1.0, access.Bytes(fits) / kCacheLineBytes) * fills;
    *lines += std::max(0.0, moved - sequential);
  }
  return traffic;
}

// Parts of a parallel loop that run at the same time (threads, or units of a device), at least 1.
double Workers(const target::Target& target) { return std::max(1, target.Workers()); }

// Sets threads, balance and dispatch of the cost by the parallel loops.
void SpreadOverThreads(const NestFacts& facts, const target::Target& target, NestCost& cost) {
  double chunks = 1, dispatches = 0, around = 1;
  bool own = false;
  for (const LoopFacts& loop : facts.loops) {
    if (loop.kind == ir::LoopKind::kParallel || loop.kind == ir::LoopKind::kGroup) {
      chunks *= loop.extent;
      own |= loop.own;
      if (dispatches == 0) dispatches = around;
    }
    around *= loop.extent;
  }
  const double threads = Workers(target);
  const double turns = std::ceil(chunks / threads);
  cost.threads = std::min(threads, std::max(1.0, chunks));
  cost.balance = chunks / (turns * cost.threads);
  if (own) cost.dispatch = dispatches * (kDispatchSeconds + kChunkSeconds * chunks / threads);
}

}  // namespace

NestCost PredictNest(const NestFacts& facts, const target::Target& target) {
  const target::Core& core = target.core;
  NestCost cost;
  SpreadOverThreads(facts, target, cost);
  const double share = 1.0 / (cost.threads * cost.balance * core.hertz);  // seconds per cycle of all the work
  const double tiles = facts.Trips(facts.tile.begin);
  cost.compute = tiles * TileCycles(facts, target, cost) * share;

  const double threads = Workers(target);
  double lines = 0;
  cost.l2_bytes = Traffic(facts, 0.8 * static_cast<double>(target.memory.l1_bytes), &lines);
  cost.l2 = (cost.l2_bytes / core.l2_bytes + lines * core.line_cycles) * share;
  cost.l3_bytes = Traffic(facts, 0.8 * static_cast<double>(target.memory.l2_bytes), &lines);
  cost.l3 = (cost.l3_bytes / core.l3_bytes + lines * core.line_cycles * 2) * share;
  // If all data fits a thread's share of the last-level cache there is no memory traffic, because the kernel before
  // left the inputs there.
  const double l3 = 0.8 * static_cast<double>(target.memory.l3_bytes) / threads;
  cost.memory_bytes = facts.WorkingSet(0) <= l3 ? 0 : Traffic(facts, l3, &lines);
  cost.memory = cost.memory_bytes / core.memory_bytes * share;

  const double worst = std::max({cost.compute, cost.l2, cost.l3, cost.memory});
  const double sum = cost.compute + cost.l2 + cost.l3 + cost.memory;
  cost.total = worst + 0.25 * (sum - worst) + cost.dispatch;
  return cost;
}

double PredictSeconds(std::span<const NestCost> costs) {
  double seconds = 1e-7;
  for (const NestCost& cost : costs) seconds += cost.total;
  return seconds;
}

double LowerBoundSeconds(double flops, double bytes, const target::Target& target, double peak_flops) {
  const target::Core& core = target.core;
  const double threads = Workers(target);
  const double peak = std::max(peak_flops, core.hertz * core.multiply_adds * 2 * target.VectorWidth(4) * threads);
  const double bandwidth =
      core.hertz * threads * (bytes <= static_cast<double>(target.memory.l3_bytes) ? core.l3_bytes : core.memory_bytes);
  return std::max(flops / peak, bytes / bandwidth);
}

}  // namespace hone::tuner

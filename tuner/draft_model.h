// SPDX-License-Identifier: Apache-2.0
// The analytic draft: how many seconds a scheduled kernel should take, from first principles. Needs no data.
//
// Computing (multiply-add units, loads, latency, registers) against the traffic of each memory level, per nest, over
// the threads its parallel loops can feed. It ranks the first candidates, filters thousands later on, and is one of the
// features the learned model corrects. Absolute numbers are only as good as the target's (compiler/target).
#ifndef HONE_TUNER_DRAFT_MODEL_H_
#define HONE_TUNER_DRAFT_MODEL_H_

#include <span>

#include "compiler/target/target.h"
#include "tuner/nest_facts.h"

namespace hone::tuner {

// Seconds of one nest, all threads working; the parts as if each were alone.
struct NestCost {
  double compute = 0;
  double l2 = 0;  // traffic between the first and second cache level
  double l3 = 0;  // between second and third
  double memory = 0;
  double dispatch = 0;                                  // starting parallel loops, running calls of loops
  double balance = 1;                                   // share of the threads' time that is work, 0 to 1
  double threads = 1;                                   // that can work at once
  double l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;  // the traffic itself
  double registers = 0;                                 // a tile wants
  double total = 0;
};

NestCost PredictNest(const NestFacts& facts, const target::Target& target);

// Of the whole kernel: its nests run one after another.
double PredictSeconds(std::span<const NestCost> costs);

// No schedule can make the workload faster on this target, by the same constants, or by what a device has shown to
// reach (peak_flops, 0 if unknown).
double LeastSeconds(double flops, double bytes, const target::Target& target, double peak_flops = 0);

}  // namespace hone::tuner

#endif  // HONE_TUNER_DRAFT_MODEL_H_

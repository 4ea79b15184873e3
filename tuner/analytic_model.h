// SPDX-License-Identifier: Apache-2.0
// The analytic cost model: estimates the seconds of a scheduled kernel from the target's constants. Needs no
// training data.
//
// For each loop nest it compares computing (multiply-add units, loads, latency, registers) with the traffic of each
// memory level, spread over the threads that the parallel loops can feed. It ranks the first candidates, filters
// thousands later, and its estimate is a feature of the learned model, which corrects it. Absolute numbers are as good
// as those of the target (compiler/target). Start with PredictNest.
#ifndef HONE_TUNER_ANALYTIC_MODEL_H_
#define HONE_TUNER_ANALYTIC_MODEL_H_

#include <span>

#include "compiler/target/target.h"
#include "tuner/nest_facts.h"

namespace hone::tuner {

// The estimated cost of one nest with all threads working. Each part, in seconds, is estimated as if it were alone.
struct NestCost {
  double compute = 0;
  double l2 = 0;                                        // traffic between the first and second cache level
  double l3 = 0;                                        // traffic between the second and third cache level
  double memory = 0;                                    // traffic beyond the last cache level
  double dispatch = 0;                                  // starting parallel loops and handing out their iterations
  double balance = 1;                                   // share of the threads' time that is work, 0 to 1
  double threads = 1;                                   // threads that can work at once
  double l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;  // the traffic in bytes
  double registers = 0;                                 // vector registers that a tile needs
  double total = 0;                                     // seconds of the nest; the parts overlap in it
};

NestCost PredictNest(const NestFacts& facts, const target::Target& target);

// The estimated seconds of a kernel whose nests run one after another.
double PredictSeconds(std::span<const NestCost> costs);

// A lower bound, in seconds, on one call of the workload as it is written, by the target's constants. peak_flops: the
// peak in operations a second that the device has measured, used if it exceeds the target's; 0: unknown.
double LowerBoundSeconds(double flops, double bytes, const target::Target& target, double peak_flops = 0);

}  // namespace hone::tuner

#endif  // HONE_TUNER_ANALYTIC_MODEL_H_

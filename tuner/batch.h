// SPDX-License-Identifier: Apache-2.0
// A batch of candidates of one workload, and the result of measuring it. Plain values; convert.h makes messages of
// them. hone/v1/measure.proto says what an agent does with each field. Start with Batch and Measured.
#ifndef HONE_TUNER_BATCH_H_
#define HONE_TUNER_BATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/kernel_interface.h"
#include "base/size_points.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "tuner/build_message.h"
#include "tuner/job.h"

namespace hone::tuner {

enum class BufferUse : uint8_t { kInput, kConstant, kOutput };

// A buffer that every kernel of the batch gets.
struct BatchBuffer {
  std::string name;
  ir::DType dtype = ir::DType::kFloat32;
  int64_t elements = 0, bytes = 0;
  BufferUse use = BufferUse::kInput;
  double low = 0, high = 0;  // range of the values that fill it; unused for outputs
  bool rounded = false;      // outputs only: its integers are rounded sums of floats, compared within the tolerance
};

struct BatchKernel {
  KernelInterface interface;
  CodeRange code;  // the kernel's part of the batch's artifact
};

struct BatchCandidate {
  std::string id;                           // unique in the batch
  std::string schedule, decisions;          // texts
  bool is_default = false;                  // it is the default schedule
  std::optional<double> predicted_seconds;  // by the cost model; empty: not predicted
  BatchKernel kernel;                       // empty until the candidate is compiled
};

// The conditions that a device must fulfil to measure a batch. All of them must hold.
struct Requirements {
  std::string architecture;                   // as in the device's fingerprint
  std::vector<std::string> cpu_features;      // as /proc/cpuinfo spells them
  std::map<std::string, std::string> labels;  // all of them must be labels of the device
  std::vector<std::string> devices;           // the device must match one of these; empty: any device
  std::string fingerprint_digest;             // the kind of device; empty: any kind
  int threads = 1;                            // the device offers at least as many
};

// Candidates of one workload to be measured in one visit to a device.
struct Batch {
  // These fields describe the workload and its job. They are equal in all batches of the workload.
  std::string workload_digest, workload, op;  // `workload` is the canonical text; `op` is for display
  std::string model, title, nodes;            // what records say of the model, the workload and the model's nodes
  // Where candidates are measured (base/size_points.h); empty: the workload has no open sizes. A call is one at every
  // point.
  std::string sizes;
  double flops = 0;                  // operations of one call
  double bytes = 0;                  // of all inputs, constants and outputs of one call
  std::vector<BatchBuffer> buffers;  // inputs and constants, then outputs, at the largest sizes
  double rtol = 0, atol = 0;         // tolerance of float and rounded outputs; both 0: outputs must be equal
  std::string target, compiler_version;
  int threads = 1;
  Requirements requirements;
  int64_t constant_bytes_between_runs = 0;  // constants that the model reads between two calls of the kernel
  int priority = 0;                         // higher goes first
  uint64_t search_seed = 0, fill_seed = 0;  // of the search; of the values in inputs and constants

  // These fields control one visit to a device. 0 means the agent's default, or no limit.
  bool final = false;  // a confirmation: all candidates are finalists, timed in interleaved rounds
  // Time of each finalist; limit of one call; limit of the visit; for how long from submission a result is useful.
  double final_seconds = 0, timeout_seconds = 0, visit_seconds = 0, useful_seconds = 0;
  std::string incumbent_id;  // the candidate that is always a finalist; empty: none

  std::vector<BatchCandidate> candidates;
  std::string artifact;   // code of all candidates and of the reference; empty until it is built
  BatchKernel reference;  // the naive kernel whose outputs are right
};

// A batch with the fields that follow from workload, target and points: texts, buffers, tolerance, architecture and
// features. Every point must have the workload's open sizes in their ranges; without open sizes there are no points.
Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target,
                       std::span<const SizePoint> points = {});

struct Failure {
  FailureKind kind = FailureKind::kCrashed;
  std::string text;  // for display
};

// The result of one candidate: times or a failure. With neither, its visit was disturbed and says nothing of it.
struct Outcome {
  std::vector<double> seconds;  // of one call, one element per repeat, in the order taken
  // Index of the first repeat taken in interleaved rounds with the other finalists. If there is none, the number of
  // repeats.
  int64_t first_interleaved = 0;
  std::optional<Failure> failure;
};
using Outcomes = std::map<std::string, Outcome>;  // by candidate id

// The result of measuring a batch. Candidates without an outcome were not measured.
struct Measured {
  Outcomes outcomes;
  std::string error;   // why the batch could not be measured; "": it was measured
  double seconds = 0;  // that the visit took on the device
};

// What a device needs to run code for the target, as a fingerprint spells it.
Requirements RequirementsOf(const target::Target& target);

// Bytes of the constants together.
int64_t ConstantBytesOf(const Batch& description);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BATCH_H_

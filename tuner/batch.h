// SPDX-License-Identifier: Apache-2.0
// A batch of candidates as the tuner makes it, and what comes back. Plain values; convert.h has the messages. What the
// fields ask of an agent stands in hone/v1/measure.proto.
#ifndef HONE_TUNER_BATCH_H_
#define HONE_TUNER_BATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/kernel_interface.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "tuner/build_message.h"
#include "tuner/job.h"

namespace hone::tuner {

enum class BufferUse : uint8_t { kInput, kConstant, kOutput };

struct BatchBuffer {
  std::string name;
  ir::DType dtype = ir::DType::kFloat32;
  int64_t elements = 0, bytes = 0;
  BufferUse use = BufferUse::kInput;
  double low = 0, high = 0;  // of the values to fill it with; not for outputs
  bool rounded = false;      // its integers are rounded sums of floats; of outputs alone
};

struct BatchKernel {
  KernelInterface interface;
  CodeRange code;  // of the artifact
};

struct BatchCandidate {
  std::string id;  // unique in the batch
  std::string schedule, decisions;
  bool is_default = false;
  std::optional<double> predicted_seconds;
  BatchKernel kernel;  // once it is built
};

// Which devices may take it.
struct Requirements {
  std::string architecture;
  std::vector<std::string> cpu_features;  // as /proc/cpuinfo spells them
  std::map<std::string, std::string> labels;
  std::vector<std::string> devices;  // names, one of which is the device's; none: any
  std::string fingerprint_digest;    // empty: of any kind
  int threads = 1;
};

struct Batch {
  // The workload, the same for all its batches.
  std::string workload_digest, workload, op;
  double flops = 0;
  std::vector<BatchBuffer> buffers;  // inputs and constants, then outputs
  double rtol = 0, atol = 0;         // of outputs that are floats, or rounded; both 0: they must be equal
  std::string target, compiler_version;
  int threads = 1;
  Requirements requirements;
  int64_t constant_bytes_between_runs = 0;
  int priority = 0;
  uint64_t search_seed = 0, fill_seed = 0;

  // What is asked of one visit. 0: as the agent sees fit, or without a limit.
  bool final = false;  // a confirmation
  double final_seconds = 0, timeout_seconds = 0, visit_seconds = 0, useful_seconds = 0;
  std::string incumbent_id;

  std::vector<BatchCandidate> candidates;
  std::string artifact;
  BatchKernel reference;
};

// The workload's part.
Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target);

struct Failure {
  records::FailureKind kind = records::FailureKind::kCrashed;
  std::string text;  // for people
};

// Of one candidate: seconds of a call, by repeats in the order taken, or why there are none.
struct Outcome {
  std::vector<double> seconds;
  int64_t first_interleaved = 0;  // from here on they were taken in turns with other finalists
  std::optional<Failure> failure;
};
using Outcomes = std::map<std::string, Outcome>;  // by candidate id

struct Measured {
  Outcomes outcomes;
  std::string error;   // why the batch could not be measured; "" if it was
  double seconds = 0;  // of the device
};

double BytesOf(const Batch& description);  // of all buffers
int64_t ConstantBytesOf(const Batch& description);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BATCH_H_

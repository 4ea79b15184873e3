// SPDX-License-Identifier: Apache-2.0
// The batch that a visit measures, and its result, as plain values: buffers, kernels, candidates, times and failures.
//
// launcher/visit_convert.h converts the protocol's messages to these values and validates them. The fields mean what
// proto/hone/v1/measure.proto says.
#ifndef HONE_DEVICE_AGENT_VISIT_BATCH_H_
#define HONE_DEVICE_AGENT_VISIT_BATCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/failure_kind.h"
#include "base/kernel_interface.h"

namespace hone::agent {

struct VisitBuffer {
  std::string name;
  BufferRole role = BufferRole::kInput;  // kInput, kConstant or kOutput
  std::string dtype;                     // as in KernelBuffer
  int64_t elements = 0, bytes = 0;
  double low = 0, high = 0;
  bool rounded = false;  // its integers are rounded sums of floats
};

struct VisitKernel {
  KernelInterface interface;                // its inputs, constants and outputs are the batch's
  int64_t code_offset = 0, code_bytes = 0;  // within the artifact; 0, 0: all of it
};

struct VisitCandidate {
  std::string id;
  VisitKernel kernel;
};

struct Tolerance {
  double rtol = 0, atol = 0;
};

struct VisitPolicy {
  double min_seconds_first = 0.003;         // time of each verified candidate in the first round
  int finalists = 3;                        // candidates that remain for the interleaved rounds
  double final_seconds = 0.01;              // time of each finalist in the interleaved rounds
  double timeout_seconds = 1;               // limit of one call of a candidate
  double reference_timeout_seconds = 30;    // limit of the one call of the reference kernel
  std::optional<int> incumbent;             // index of a candidate that is always a finalist
  int64_t constant_bytes_between_runs = 0;  // constants read between two timed calls; 0: constants stay warm
  double visit_seconds = 0;                 // 0: no limit
};

struct VisitBatch {
  std::string workload_digest;  // of the workload's text as received; a digest that the batch claims is not used
  std::string_view artifact;    // code of all kernels; owned by the caller
  std::vector<VisitBuffer> buffers;
  // Where every kernel is verified and timed: the elements of its buffer of sizes. At least one point, which is empty
  // for kernels without open sizes. A call of a kernel is one call at every point.
  std::vector<std::vector<int64_t>> points = {{}};
  VisitKernel reference;
  std::vector<VisitCandidate> candidates;
  Tolerance tolerance;
  uint64_t fill_seed = 0;
  int threads = 1;
  VisitPolicy policy;
  bool final = false;           // a confirmation: all candidates are finalists
  double call_seconds_min = 0;  // lower bound of one call of any kernel on this device; 0: not known
};

// The offset of each buffer of the batch in its block. One block holds inputs and constants, another the outputs.
struct DataLayout {
  std::vector<int64_t> offsets;  // by buffer, multiples of HONE_BUFFER_ALIGNMENT
  int64_t input_bytes = 0, output_bytes = 0;
};
DataLayout ComputeDataLayout(const VisitBatch& batch);

struct VisitFailure {
  FailureKind kind = FailureKind::kCrashed;
  std::string text;
};

struct VisitTiming {
  std::vector<double> seconds;  // of one call, per repeat
  int64_t calls_per_repeat = 0;
  int first_interleaved = 0;  // index into seconds of the first repeat of interleaved rounds; without one: its size
  double max_error = 0;
};

// monostate: the visit had no time for the candidate.
using VisitOutcome = std::variant<std::monostate, VisitTiming, VisitFailure>;

// One reading of a device's sensors; a field is empty if the device has no such sensor.
struct Sensors {
  std::optional<double> temperature_c;  // hottest zone
  std::optional<double> clock_mhz;      // fastest of its clocks
  std::optional<double> watts;          // of the board at this moment
  std::optional<double> joules;         // that the CPU packages have used since any moment; it may start again at 0
  bool slowed_down = false;             // the device reports throttling (heat or lack of power): it gets no work
  bool seems_slowed_down = false;       // a sign of throttling, which counts if two readings show it
};

// Combines a reading into `all`: the highest temperature and clock, and slowed_down if any reading reported throttling
// or two showed signs of it.
void AddReading(const Sensors& reading, Sensors& all);

inline constexpr char kCancelled[] = "cancelled";  // VisitResult.error of a visit that was told to end early

struct VisitResult {
  std::string error;                        // empty, or why there are no outcomes
  std::vector<VisitOutcome> outcomes;       // by candidate
  double reference_seconds = 0, drift = 0;  // of the device's reference loop
  double seconds = 0;                       // of the visit
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_BATCH_H_

// SPDX-License-Identifier: Apache-2.0
// What a program computes on made-up inputs, by the interpreter: how hone-opt finds a pass that changes the meaning.
//
// Slow, and no proof: one draw of the inputs. What the program cannot do without (an index in range) must be in the
// ranges.
#ifndef HONE_COMPILER_OPT_MEANING_H_
#define HONE_COMPILER_OPT_MEANING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/workload.h"

namespace hone::opt {

struct Tensor {
  std::string name;
  ir::DType dtype;
  ir::Bytes bytes;
};
using Tensors = std::vector<Tensor>;

// All params of the func after it ran; a func does not say which of them are outputs. A param that is called as one of
// `ranges` begins with values from that range, others from [-1, 1] (floats) or {0, 1}.
absl::StatusOr<Tensors> Meaning(const ir::Func& func, uint64_t seed, const std::vector<ir::Param>& ranges = {});
// The outputs of the workload, and those that the kernel makes of the same params. `prepare` has no body if nothing is
// packed.
absl::StatusOr<Tensors> Meaning(const ir::Workload& workload, uint64_t seed);
absl::StatusOr<Tensors> Meaning(const ir::Workload& workload, const ir::Func& prepare, const ir::Func& main,
                                uint64_t seed);
// The outputs of the graph, which must be legal.
absl::StatusOr<Tensors> Meaning(const graph::Graph& graph, uint64_t seed);

// DataLoss naming the first element that differs by more than `tolerance` times the largest of its tensor. Integers,
// and with tolerance 0 floats too, must have the same bits; but NaNs are one.
absl::Status ExpectSame(const Tensors& expected, const Tensors& actual, double tolerance);

}  // namespace hone::opt

#endif  // HONE_COMPILER_OPT_MEANING_H_

// SPDX-License-Identifier: Apache-2.0
// Runs a program with the interpreter on random inputs. hone-opt compares the results before and after a pass to find
// one that changes the program's meaning.
//
// It is slow, and a test rather than a proof: the inputs are drawn once. Inputs with constraints (an index must be in
// range) need an entry in `ranges`.
#ifndef HONE_COMPILER_OPT_RANDOM_RUN_H_
#define HONE_COMPILER_OPT_RANDOM_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"
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

// Returns all params of the func after it ran, because a func does not state which of them are outputs. A param named
// in `ranges` starts with random values from its range there, others from [-1, 1] (floats) or {0, 1}. Equal seeds give
// equal values.
absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Func& func, uint64_t seed,
                                          const std::vector<ir::Param>& ranges = {});
// Returns the outputs of the workload, computed from its definition or by its kernel (`prepare`, then `main`), for the
// same random params. `prepare` has no body if no constant is packed.
absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Workload& workload, uint64_t seed);
absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Workload& workload, const ir::Func& prepare, const ir::Func& main,
                                          uint64_t seed);
// Returns the outputs of the graph, which must be legal, or of a plan. Unimplemented if they have open sizes.
absl::StatusOr<Tensors> RunOnRandomInputs(const graph::Graph& graph, uint64_t seed);
absl::StatusOr<Tensors> RunOnRandomInputs(const graph::Plan& plan, uint64_t seed);

// Compares results. DataLoss, naming the first element that differs by more than `tolerance` times the largest
// magnitude in its tensor. Integers must always be equal; floats must have equal bits if tolerance is 0, except that
// all NaNs are equal.
absl::Status ExpectSame(const Tensors& expected, const Tensors& actual, double tolerance);

}  // namespace hone::opt

#endif  // HONE_COMPILER_OPT_RANDOM_RUN_H_

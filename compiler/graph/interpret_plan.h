// SPDX-License-Identifier: Apache-2.0
// Runs a plan with the IR interpreter. It is slow and simple: the reference that tests compare other results with.
#ifndef HONE_COMPILER_GRAPH_INTERPRET_PLAN_H_
#define HONE_COMPILER_GRAPH_INTERPRET_PLAN_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "compiler/ir/interpret.h"

namespace hone::graph {

// Called after each call, for each tensor that it wrote, which is no alias. The watch may change the bytes; later calls
// read the changed ones.
using PlanWatch = std::function<void(size_t call, TensorId tensor, ir::Bytes& bytes)>;

// `inputs` has the row-major bytes of each plan input, exactly as many as its type takes; their shapes must be fixed.
// Returns the bytes of each plan output. `shapes`, unless nullptr, receives the shape of each, which a run may decide.
// watch: may be empty.
absl::StatusOr<std::vector<ir::Bytes>> InterpretPlan(const Plan& plan, const std::vector<ir::Bytes>& inputs,
                                                     std::vector<ir::Shape>* shapes = nullptr,
                                                     const PlanWatch& watch = {});

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_INTERPRET_PLAN_H_

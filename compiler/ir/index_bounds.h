// SPDX-License-Identifier: Apache-2.0
// Whether a workload that a user wrote stays inside its tensors.
//
// The verifier does not ask this, because operators of Hone limit their indices in ways that it could not prove. Here
// every index must be proved, for all values of the open sizes. Start with CheckIndices.
#ifndef HONE_COMPILER_IR_INDEX_BOUNDS_H_
#define HONE_COMPILER_IR_INDEX_BOUNDS_H_

#include "absl/status/status.h"
#include "compiler/ir/workload.h"

namespace hone::ir {

// InvalidArgument, which names stage, tensor and index, if an index may leave its dimension.
absl::Status CheckIndices(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_INDEX_BOUNDS_H_

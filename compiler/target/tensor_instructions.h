// SPDX-License-Identifier: Apache-2.0
// The tensor instructions of CPUs, by the features they need. The instructions themselves are in
// compiler/ir/tensor_instruction.h.
#ifndef HONE_COMPILER_TARGET_TENSOR_INSTRUCTIONS_H_
#define HONE_COMPILER_TARGET_TENSOR_INSTRUCTIONS_H_

#include <vector>

#include "compiler/ir/tensor_instruction.h"
#include "compiler/target/cpu_features.h"

namespace hone::target {

// Returns the tensor instructions that CPUs with these features have, the widest first.
std::vector<ir::TensorInstruction> TensorInstructionsOf(Arch arch, const FeatureSet& features);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TENSOR_INSTRUCTIONS_H_

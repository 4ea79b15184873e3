// SPDX-License-Identifier: Apache-2.0
// The interpreter: executes IR, simple and slow. Every rewrite and every back end is tested against it, and constant
// folding uses it.
//
// Tensors are plain bytes in row-major order. Every access is checked against the buffer's shape. An index out of
// bounds is a Status that names buffer and index, never undefined behaviour. So is a race between lanes in a Func with
// a grid.
#ifndef HONE_COMPILER_IR_INTERPRET_H_
#define HONE_COMPILER_IR_INTERPRET_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/workload.h"

namespace hone::ir {

using Bytes = std::vector<std::byte>;

// Runs func on args, one span per param, each exactly NumBytes(param) long. Errors: InvalidArgument for wrong args;
// OutOfRange for an illegal access or a race; ResourceExhausted for memory.
absl::Status Interpret(const Func& func, std::span<const std::span<std::byte>> args);
// Computes the workload's outputs from its params (in order), stage by stage, by definition.
absl::StatusOr<std::vector<Bytes>> Interpret(const Workload& workload,
                                             std::span<const std::span<const std::byte>> params);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_INTERPRET_H_

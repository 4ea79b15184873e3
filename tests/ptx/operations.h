// SPDX-License-Identifier: Apache-2.0
// The instructions that only compute with registers of one lane, by name.
#ifndef HONE_TESTS_PTX_OPERATIONS_H_
#define HONE_TESTS_PTX_OPERATIONS_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/ptx/instruction.h"

namespace hone::ptx {

struct Operation {
  Compute compute = nullptr;
  int inputs = 0;
};
using Operations = std::unordered_map<std::string, Operation>;

// The operation with that name, as "add.s32"; null if there is none.
const Operation* FindOperation(const std::string& name);
// For names as "setp.lt.and.f32" and "cvt.rn.sat.f16.f32". Modifiers are written to the instruction. Empty: not known.
std::optional<Operation> DecodeComparison(std::string_view name, Instruction* instruction);
std::optional<Operation> DecodeConversion(std::string_view name, Instruction* instruction);

// Private to operations.cc.
void AddFloatOperations(Operations* operations);

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_OPERATIONS_H_

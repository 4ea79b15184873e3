// SPDX-License-Identifier: Apache-2.0
// Instructions that compute with the registers of one lane, by their names.
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

// "add.s32"; nullptr for a name that is not one of them.
const Operation* FindOperation(const std::string& name);
// "setp.lt.and.f32", "cvt.rn.sat.f16.f32": what these say beside the types goes into the instruction.
std::optional<Operation> DecodeComparison(std::string_view name, Instruction* instruction);
std::optional<Operation> DecodeConversion(std::string_view name, Instruction* instruction);

// Private to operations.cc.
void AddFloatOperations(Operations* operations);

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_OPERATIONS_H_

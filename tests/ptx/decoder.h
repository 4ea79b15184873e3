// SPDX-License-Identifier: Apache-2.0
// Decodes the statements of one kernel into instructions (instruction.h).
#ifndef HONE_TESTS_PTX_DECODER_H_
#define HONE_TESTS_PTX_DECODER_H_

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptx/instruction.h"
#include "tests/ptx/operations.h"
#include "tests/ptx/statement.h"

namespace hone::ptx {

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  int64_t align = 1;
  uint64_t bytes = 0;
  bool asked = false;    // shared memory whose size the launch gives
  uint64_t address = 0;  // of global memory; for other spaces set by Finish, if any instruction names the variable
};

class Decoder {
 public:
  Decoder(Kernel* kernel, const std::vector<Variable>& module_variables);

  void DeclareParameter(const std::string& name);
  void DeclareRegister(const std::string& name);  // in the innermost scope
  void DeclareVariable(Variable variable);
  absl::Status DeclareLabel(const std::string& name);
  void OpenScope() { scopes_.emplace_back(); }
  void CloseScope() { scopes_.pop_back(); }
  absl::Status Decode(const Statement& statement);
  // Gives addresses to the variables that were named, and targets to the branches. Called last.
  absl::Status Finish();

 private:
  // One function per first word of an instruction's name. Each returns an error for a form that it does not know.
  absl::Status DecodeCompute(const Operation& operation, Instruction i);
  absl::Status DecodeMove(Instruction i);
  absl::Status DecodeAddress(Instruction i);  // cvta
  absl::Status DecodeAccess(Instruction i);   // ld, st
  absl::Status DecodeControl(Instruction i);
  absl::Status DecodeCopy(Instruction i);
  absl::Status DecodeBulkCopy(Instruction i);
  absl::Status DecodeObject(Instruction i);
  absl::Status DecodeShuffle(Instruction i);
  absl::Status DecodeMma(Instruction i);
  absl::Status DecodeProduct(Instruction i);

  absl::Status Unknown() const;
  bool HasOperands(size_t count) const { return statement_->operands.size() == count; }
  absl::StatusOr<uint32_t> SlotOf(const Operand& operand);
  absl::StatusOr<uint64_t> NumberOf(const Operand& operand) const;
  // Adds the slots of all parts to Kernel::lists, and sets the instruction's list to them.
  absl::Status AddList(const std::vector<Operand>& parts, Instruction* i);
  absl::Status SetAddress(const Operand& operand, Instruction* i);
  uint32_t Constant(uint64_t value);
  uint32_t NewSlot() { return kernel_->slots++; }
  void Emit(const Instruction& i);

  Kernel* kernel_;
  const Statement* statement_ = nullptr;
  std::vector<std::string_view> parts_;  // of the statement's name, between its dots
  std::vector<std::unordered_map<std::string, uint32_t>> scopes_;
  std::map<uint64_t, uint32_t> constants_;
  std::vector<Variable> variables_;
  std::vector<std::pair<size_t, uint32_t>> named_;  // index of a variable, and the slot that gets its address
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;  // index of a branch, and its label
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_DECODER_H_

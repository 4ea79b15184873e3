#include "compiler/ir/eval_contract.h"

#include <cmath>

#include "base/status.h"

namespace hone::ir::eval {

absl::StatusOr<ContractCode> ContractCode::Compile(const Contract& contract, ExprCompiler& exprs) {
  ContractCode code;
  code.entry_ = &EntryOf(contract.instruction);
  HONE_RETURN_IF_ERROR(Compile(contract.sum, exprs, &code.sum_));
  HONE_RETURN_IF_ERROR(Compile(contract.a, exprs, &code.a_));
  HONE_RETURN_IF_ERROR(Compile(contract.b, exprs, &code.b_));
  return code;
}

absl::Status ContractCode::Compile(const MatrixOperand& operand, ExprCompiler& exprs, Operand* out) {
  const Load& first = *operand.first.As<Load>();
  out->stride = operand.stride;
  out->apart = operand.apart;
  return exprs.CompileAccess(first.buffer, first.indices, {}, &out->first);
}

Value ContractCode::Read(const Operand& operand, int64_t first, int64_t row, int64_t column, int64_t chunk,
                         Frame& frame) {
  const int64_t offset = first + row * operand.stride + column / chunk * operand.apart + column % chunk;
  if (!operand.first.Touch(frame, offset, AccessCode::Use::kRead)) return {};
  const DType dtype = operand.first.buffer->dtype;
  return eval::Read(dtype, frame.buffers[static_cast<size_t>(operand.first.slot)] + offset * SizeOf(dtype));
}

double ContractCode::Rounded(double value) const {
  if (entry_->fraction_bits == 0 || !std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // of which one bit is before the fraction
  const double scaled = std::ldexp(fraction, entry_->fraction_bits + 1);
  return std::ldexp(entry_->cuts ? std::trunc(scaled) : std::round(scaled), exponent - entry_->fraction_bits - 1);
}

Value ContractCode::Sum(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const {
  Value total = Read(sum_, firsts[0], row, column, entry_->n, frame);
  for (int64_t k = 0; k < entry_->k && !frame.failed; ++k) {
    const Value a = Read(a_, firsts[1], row, k, entry_->Chunk(), frame);
    const Value b = Read(b_, firsts[2], column, k, entry_->Chunk(), frame);
    if (IsFloat(entry_->sum)) {
      total.d += Rounded(a.d) * Rounded(b.d);
    } else {  // what wraps in 64 bits wraps the same in fewer
      total.i = static_cast<int64_t>(static_cast<uint64_t>(total.i) +
                                     static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
    }
  }
  return total;
}

bool ContractCode::Add(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const {
  const Value total = Sum(row, column, firsts, frame);
  const int64_t offset = firsts[0] + row * sum_.stride + column;
  if (frame.failed || !sum_.first.Touch(frame, offset, AccessCode::Use::kWrite)) return false;
  Write(entry_->sum, total, frame.buffers[static_cast<size_t>(sum_.first.slot)] + offset * SizeOf(entry_->sum));
  return true;
}

bool ContractCode::Run(Frame& frame) const {
  const int64_t firsts[] = {sum_.first.Offset(frame, AccessCode::Use::kRead),
                            a_.first.Offset(frame, AccessCode::Use::kRead),
                            b_.first.Offset(frame, AccessCode::Use::kRead)};
  for (int64_t row = 0; row < entry_->m && !frame.failed; ++row) {
    for (int64_t column = 0; column < entry_->n && !frame.failed; ++column) Add(row, column, firsts, frame);
  }
  return !frame.failed;
}

}  // namespace hone::ir::eval

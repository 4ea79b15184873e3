// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/eval_mma.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::ir::eval {

absl::StatusOr<MmaCode> MmaCode::Compile(const Mma& mma, ExprCompiler& exprs) {
  MmaCode code;
  code.entry_ = &EntryOf(mma.instruction);
  HONE_RETURN_IF_ERROR(Compile(mma.sum, exprs, &code.sum_));
  HONE_RETURN_IF_ERROR(Compile(mma.a, exprs, &code.a_));
  HONE_RETURN_IF_ERROR(Compile(mma.b, exprs, &code.b_));
  return code;
}

absl::Status MmaCode::Compile(const MatrixOperand& operand, ExprCompiler& exprs, Operand* out) {
  const Load& first = *operand.first.As<Load>();
  out->stride = operand.stride;
  out->column_stride = operand.column_stride;
  return exprs.CompileAccess(first.buffer, first.indices, {}, &out->first);
}

Value MmaCode::Read(const Operand& operand, int64_t first, int64_t row, int64_t column, int64_t chunk, Frame& frame) {
  const int64_t offset = first + row * operand.stride + column / chunk * operand.column_stride + column % chunk;
  if (!operand.first.CheckOffset(frame, offset, AccessCode::Use::kRead)) return {};
  const DType dtype = operand.first.buffer->dtype;
  return eval::Read(dtype, frame.buffers[static_cast<size_t>(operand.first.slot)] + offset * SizeOf(dtype));
}

double MmaCode::Rounded(double value, bool truncates) const {
  if (entry_->fraction_bits == 0 || !std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double fraction =
      std::frexp(value, &exponent);  // in [0.5, 1): its first bit is the implicit one before the fraction
  const double scaled = std::ldexp(fraction, entry_->fraction_bits + 1);
  return std::ldexp(truncates ? std::trunc(scaled) : std::round(scaled), exponent - entry_->fraction_bits - 1);
}

Value MmaCode::Plus(Value x, Value y) const {
  if (IsFloat(entry_->sum)) {
    x.d += y.d;
  } else {
    x.i = static_cast<int64_t>(static_cast<uint64_t>(x.i) + static_cast<uint64_t>(y.i));
  }
  return x;
}

Value MmaCode::Product(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const {
  Value total{};
  if (IsFloat(entry_->sum)) total.d = 0;
  for (int64_t k = 0; k < entry_->k && !frame.failed; ++k) {
    const Value a = Read(a_, firsts[1], row, k, entry_->Chunk(), frame);
    const Value b = Read(b_, firsts[2], column, k, entry_->Chunk(), frame);
    Value product{};
    if (IsFloat(entry_->sum)) {
      product.d = Rounded(a.d, entry_->truncates && !entry_->loads_a) * Rounded(b.d, entry_->truncates);
    } else {
      product.i = static_cast<int64_t>(static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
    }
    total = Plus(total, product);
  }
  return total;
}

std::vector<Value> MmaCode::Products(const int64_t (&firsts)[3], Frame& frame) const {
  std::vector<Value> products;
  for (int64_t row = 0; row < entry_->m; ++row) {
    for (int64_t column = 0; column < entry_->n; ++column) products.push_back(Product(row, column, firsts, frame));
  }
  return products;
}

bool MmaCode::Add(const AsyncMmaQueue::Entry& entry, Frame& frame) const {
  for (int64_t i = 0; i < entry_->m * entry_->n && !frame.failed; ++i) {
    const int64_t row = i / entry_->n, column = i % entry_->n;
    const Value total =
        Plus(Read(sum_, entry.firsts[0], row, column, entry_->n, frame), entry.added[static_cast<size_t>(i)]);
    const int64_t offset = entry.firsts[0] + row * sum_.stride + column;
    if (frame.failed || !sum_.first.CheckOffset(frame, offset, AccessCode::Use::kWrite)) return false;
    Write(entry_->sum, total, frame.buffers[static_cast<size_t>(sum_.first.slot)] + offset * SizeOf(entry_->sum));
  }
  return !frame.failed;
}

bool MmaCode::Run(Frame& frame) const {
  AsyncMmaQueue::Entry entry{
      this,
      {sum_.first.Offset(frame, AccessCode::Use::kRead), a_.first.Offset(frame, AccessCode::Use::kRead),
       b_.first.Offset(frame, AccessCode::Use::kRead)},
      {}};
  entry.added = Products(entry.firsts, frame);
  if (frame.failed) return false;
  if (!entry_->is_async) return Add(entry, frame);
  frame.products.open.push_back(std::move(entry));
  return true;
}

bool MmaCode::CompleteMma(const AsyncMmaQueue::Entry& entry, Frame& frame) const {
  const std::vector<Value> now = Products(entry.firsts, frame);
  if (frame.failed) return false;
  const auto same = [](Value x, Value y) { return x.i == y.i; };
  if (std::ranges::equal(now, entry.added, same)) return Add(entry, frame);
  frame.error =
      fmt::format("'{}' or '{}' changed while a tensor instruction read it; wait for the instruction first ('settle')",
                  a_.first.buffer->name, b_.first.buffer->name);
  frame.failed = true;
  return false;
}

bool MmaCode::WaitForGroups(int64_t pending, Frame& frame) {
  AsyncMmaQueue& queue = frame.products;
  queue.commit_groups.push_back(std::exchange(queue.open, {}));
  while (static_cast<int64_t>(queue.commit_groups.size()) > pending) {
    for (const AsyncMmaQueue::Entry& entry : queue.commit_groups.front()) {
      if (!entry.code->CompleteMma(entry, frame)) return false;
    }
    queue.commit_groups.pop_front();
  }
  return true;
}

std::string MmaCode::InUseError(const Frame& frame, const BufferNode* buffer) {
  const auto uses = [&](const AsyncMmaQueue::Entry& entry) {
    const MmaCode& code = *entry.code;
    return code.sum_.first.buffer == buffer || code.a_.first.buffer == buffer || code.b_.first.buffer == buffer;
  };
  const bool used = std::ranges::any_of(frame.products.open, uses) ||
                    std::ranges::any_of(frame.products.commit_groups, [&](const auto& commit_group) {
                      return std::ranges::any_of(commit_group, uses);
                    });
  if (!used) return "";
  return fmt::format(
      "the memory of '{}' is freed while a tensor instruction uses it; wait for the instruction first ('settle')",
      buffer->name);
}

}  // namespace hone::ir::eval

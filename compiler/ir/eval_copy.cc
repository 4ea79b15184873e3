// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/eval_copy.h"

#include <utility>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::ir::eval {

absl::StatusOr<CopyCode> CopyCode::Compile(const Copy& copy, ExprCompiler& exprs) {
  if (copy.count < 1)
    return absl::InvalidArgumentError(fmt::format("a copy has {} elements; it must have 1 or more", copy.count));
  CopyCode code;
  const Load& source = *copy.source.As<Load>();
  code.count_ = copy.count;
  code.is_bulk_ = IsBulkCopy(copy);
  HONE_RETURN_IF_ERROR(exprs.CompileAccess(copy.buffer, copy.indices, {}, &code.place_));
  HONE_RETURN_IF_ERROR(exprs.CompileAccess(source.buffer, source.indices, {}, &code.source_));
  if (copy.mask.defined()) {
    HONE_ASSIGN_OR_RETURN(code.mask_, exprs.Compile(copy.mask));
  }
  return code;
}

bool CopyCode::Run(Frame& frame) const {
  const bool reads = mask_ == nullptr || (*mask_)(frame).i != 0;
  CopyQueue::Entry entry{.buffer = place_.buffer, .source = source_.buffer, .count = count_, .is_bulk = is_bulk_};
  entry.to_offset = place_.Offset(frame, AccessCode::Use::kCopy);
  if (reads) entry.from_offset = source_.Offset(frame, AccessCode::Use::kRead);
  for (int64_t i = 1; i < count_ && !frame.failed; ++i) {
    place_.CheckOffset(frame, entry.to_offset + i, AccessCode::Use::kCopy);
    if (reads) source_.CheckOffset(frame, entry.from_offset + i, AccessCode::Use::kRead);
  }
  if (frame.failed) return false;
  const auto at = [&](const AccessCode& access, int64_t offset) {
    return frame.buffers[static_cast<size_t>(access.slot)] + offset * SizeOf(access.buffer->dtype);
  };
  entry.to = at(place_, entry.to_offset);
  if (reads) entry.from = at(source_, entry.from_offset);
  frame.copies.Begin(std::move(entry));
  return true;
}

}  // namespace hone::ir::eval

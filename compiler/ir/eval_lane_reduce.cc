// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/eval_lane_reduce.h"

#include "base/status.h"
#include "fmt/format.h"

namespace hone::ir::eval {
namespace {

// Slot names that no variable of a Func can have, because names in the text contain no line break.
constexpr const char* kOwn = "merge\nown";
constexpr const char* kOther = "merge\nother";

}  // namespace

absl::StatusOr<LaneReduceCode> LaneReduceCode::Compile(const LaneReduce& reduce, ExprCompiler& exprs) {
  LaneReduceCode code;
  const Load& place = *reduce.place.As<Load>();
  const Type type = reduce.value.type();
  code.parts_ = reduce.parts;
  HONE_RETURN_IF_ERROR(exprs.CompileAccess(place.buffer, place.indices, {}, &code.place_));
  if (reduce.mask.defined()) {
    HONE_ASSIGN_OR_RETURN(code.mask_, exprs.Compile(reduce.mask));
  }
  HONE_ASSIGN_OR_RETURN(code.part_, exprs.Compile(reduce.part));
  HONE_ASSIGN_OR_RETURN(code.value_, exprs.Compile(reduce.value));
  HONE_ASSIGN_OR_RETURN(code.identity_, exprs.Compile(Identity(reduce.reduction, type)));
  code.own_slot_ = static_cast<size_t>(exprs.BindVar(kOwn));
  code.other_slot_ = static_cast<size_t>(exprs.BindVar(kOther));
  HONE_ASSIGN_OR_RETURN(code.both_,
                        exprs.Compile(Combine(reduce.reduction, MakeVar(kOwn, type), MakeVar(kOther, type))));
  exprs.UnbindVar(kOwn);
  exprs.UnbindVar(kOther);
  return code;
}

void LaneReduceCode::Write(Frame& frame, Value value) const {
  const int64_t offset = place_.Offset(frame, AccessCode::Use::kWrite);
  if (frame.failed) return;
  const DType dtype = place_.buffer->dtype;
  eval::Write(dtype, value, frame.buffers[static_cast<size_t>(place_.slot)] + offset * SizeOf(dtype));
}

std::string LaneReduceCode::Run(std::span<Frame> lanes, int64_t group) const {
  const auto count = static_cast<int64_t>(lanes.size());
  if (count % parts_ != 0)
    return fmt::format("a lane reduction has {} parts, which does not divide the {} lanes of a group", parts_, count);
  std::vector<Value> values;
  std::vector<bool> takes;
  for (int64_t lane = 0; lane < count; ++lane) {
    Frame& frame = lanes[static_cast<size_t>(lane)];
    frame.races->Enter(group, lane);
    if (const int64_t part = (*part_)(frame).i; part != lane % parts_) {
      return fmt::format("in a lane reduction of {} parts, lane {} has part {}; it must have part {}", parts_, lane,
                         part, lane % parts_);
    }
    takes.push_back(mask_ == nullptr || (*mask_)(frame).i != 0);
    values.push_back(takes.back() ? (*value_)(frame) : (*identity_)(frame));
    if (frame.failed) return frame.error;
  }
  for (int64_t distance = parts_ / 2; distance > 0; distance /= 2) {
    const std::vector<Value> before = values;
    for (int64_t lane = 0; lane < count; ++lane) {
      Frame& frame = lanes[static_cast<size_t>(lane)];
      frame.vars[own_slot_] = before[static_cast<size_t>(lane)];
      frame.vars[other_slot_] = before[static_cast<size_t>(lane ^ distance)];
      values[static_cast<size_t>(lane)] = (*both_)(frame);
    }
  }
  for (int64_t lane = 0; lane < count; ++lane) {
    Frame& frame = lanes[static_cast<size_t>(lane)];
    frame.races->Enter(group, lane);
    const bool writes = place_.buffer->scope == Scope::kLocal || lane % parts_ == 0;
    if (writes && takes[static_cast<size_t>(lane)]) Write(frame, values[static_cast<size_t>(lane)]);
    if (frame.failed) return frame.error;
  }
  return "";
}

}  // namespace hone::ir::eval

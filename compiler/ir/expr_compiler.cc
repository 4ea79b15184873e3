// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/expr_checker.h"
#include "compiler/ir/match.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"

namespace hone::ir::eval {
namespace {

Value RunConstant(const Code& code, Frame&) { return code.constant; }
Value RunScalarVar(const Code& code, Frame& frame) { return frame.vars[static_cast<size_t>(code.slot)]; }
Value RunVectorVar(const Code& code, Frame& frame) {
  return frame.vars[static_cast<size_t>(code.slot + frame.element)];
}
Value RunSelect(const Code& code, Frame& frame) {
  return (*code.a)(frame).i != 0 ? (*code.b)(frame) : (*code.c)(frame);
}
// Evaluates both arms for every element. Select of a vector is eager in its arms.
Value RunVectorSelect(const Code& code, Frame& frame) {
  const Value on_true = (*code.b)(frame), on_false = (*code.c)(frame);
  return (*code.a)(frame).i != 0 ? on_true : on_false;
}
// Whether the condition can have different values for the elements of one vector.
bool ElementsDiffer(const Expr& condition) {
  return condition.type().width > 1 && condition.As<Broadcast>() == nullptr;
}
Value RunBroadcast(const Code& code, Frame& frame) { return (*code.a)(frame); }
Value RunElement(const Code&, Frame& frame) { return {.i = frame.element}; }

}  // namespace

bool AccessCode::IsMaskedOff(Frame& frame) const {
  if (mask == nullptr || (*mask)(frame).i != 0) return false;
  for (size_t i = 0; elements_differ && i < indices.size(); ++i) (*indices[i])(frame);
  return true;
}

int64_t AccessCode::Offset(Frame& frame, Use use) const {
  int64_t offset = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = (*indices[i])(frame).i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(extents[i])) {
      if (!frame.failed) {
        frame.error = fmt::format("index {} of dimension {} is outside buffer '{}' (extent {})", index, i, buffer->name,
                                  extents[i]);
      }
      frame.failed = true;
      return -1;
    }
    offset = offset * extents[i] + index;
  }
  if (frame.races == nullptr || frame.failed) return offset;
  return CheckOffset(frame, offset, use) ? offset : -1;
}

bool AccessCode::CheckOffset(Frame& frame, int64_t offset, Use use) const {
  if (frame.failed) return false;
  if (offset < 0 || offset >= NumElements(*buffer)) {
    frame.error =
        fmt::format("element {} is outside buffer '{}' of {} elements", offset, buffer->name, NumElements(*buffer));
  } else if (frame.races != nullptr) {
    switch (use) {
      case Use::kRead:
        frame.error = frame.races->Read(buffer, offset);
        break;
      case Use::kWrite:
        frame.error = frame.races->Write(buffer, offset);
        break;
      case Use::kCopy:
        frame.error = frame.races->BeginCopy(buffer, offset);
        break;
    }
  }
  frame.failed = !frame.error.empty();
  return !frame.failed;
}

Code* ExprCompiler::Add(Run run) {
  codes_.emplace_back();
  codes_.back().run = run;
  return &codes_.back();
}

int ExprCompiler::NewSlot(int count) {
  const int slot = var_slots_;
  var_slots_ += count;
  return slot;
}

int ExprCompiler::BindVar(std::string_view name, int width) {
  const int slot = NewSlot(width);
  vars_[std::string(name)].push_back(slot);
  return slot;
}

void ExprCompiler::UnbindVar(std::string_view name) { vars_.find(name)->second.pop_back(); }

int ExprCompiler::BindBuffer(const BufferNode* buffer) {
  return buffers_.try_emplace(buffer, static_cast<int>(buffers_.size())).first->second;
}

const Code* ExprCompiler::CompileSlot(int slot) {
  Code* code = Add(RunScalarVar);
  code->slot = slot;
  return code;
}

const Code* ExprCompiler::CompileBinary(BinaryOp op, DType operand, const Code* a, const Code* b) {
  Code* code = Add(PickBinary(op, operand));
  code->a = a;
  code->b = b;
  code->from = operand;
  code->to = IsCompare(op) ? DType::kBool : operand;
  return code;
}

absl::Status ExprCompiler::CompileAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask,
                                         AccessCode* out) {
  const auto found = buffers_.find(buffer.get());
  if (found == buffers_.end()) {
    return absl::InvalidArgumentError(fmt::format("buffer '{}' is neither a parameter nor allocated", buffer->name));
  }
  out->buffer = buffer.get();
  out->slot = found->second;
  const bool flat = indices.size() != buffer->shape.size();
  out->extents = flat ? std::vector<int64_t>{NumElements(*buffer)} : MaxValues(buffer->shape);
  for (const Expr& index : indices) {
    HONE_ASSIGN_OR_RETURN(const Code* code, Compile(index));
    out->indices.push_back(code);
  }
  if (mask.defined()) {
    HONE_ASSIGN_OR_RETURN(out->mask, Compile(mask));
    out->elements_differ = ElementsDiffer(mask);
  }
  return absl::OkStatus();
}

absl::Status ExprCompiler::CompileChildren(const Expr& e, Code* code) {
  const Code** const operands[] = {&code->a, &code->b, &code->c};
  size_t count = 0;
  absl::Status status = absl::OkStatus();
  ForEachChild(e, [&](const Expr& child) {
    if (!status.ok()) return;
    HONE_CHECK(count < std::size(operands));
    auto compiled = Compile(child);
    status = compiled.status();
    if (!status.ok()) return;
    *operands[count++] = *compiled;
    if (count == 1) code->from = child.type().dtype;
  });
  code->to = e.type().dtype;
  return status;
}

absl::StatusOr<const Code*> ExprCompiler::Compile(const Expr& e) {
  if (ComputesInStorageType(e))
    return IllegalExpr(e, "this computes in a type that is only for storage; cast to f32 first");
  if (const Load* load = e.As<Load>()) {
    Code* code = Add(PickLoad(load->buffer->dtype));
    HONE_RETURN_IF_ERROR(CompileAccess(load->buffer, load->indices, load->mask, &code->access));
    return code;
  }
  if (const Var* var = e.As<Var>()) {
    const auto found = vars_.find(var->name);
    if (found == vars_.end() || found->second.empty()) {
      return absl::InvalidArgumentError(fmt::format("variable '{}' is not bound", var->name));
    }
    Code* code = Add(var->type.width == 1 ? RunScalarVar : RunVectorVar);
    code->slot = found->second.back();
    return code;
  }
  if (const Ramp* ramp = e.As<Ramp>()) {
    HONE_ASSIGN_OR_RETURN(const Code* base, Compile(ramp->base));
    HONE_ASSIGN_OR_RETURN(const Code* stride, Compile(ramp->stride));
    const DType dtype = ramp->base.type().dtype;
    const Code* element = Add(RunElement);
    if (IsFloat(dtype)) {
      Code* cast = Add(PickCast(DType::kInt64, dtype));
      cast->a = element;
      cast->to = dtype;
      element = cast;
    }
    return CompileBinary(BinaryOp::kAdd, dtype, base, CompileBinary(BinaryOp::kMul, dtype, element, stride));
  }
  Code* code = Add(nullptr);
  HONE_RETURN_IF_ERROR(CompileChildren(e, code));
  code->run = Match(
      e,
      [&](const IntImm& n) {
        code->constant.i = n.value;
        return Run{RunConstant};
      },
      [&](const FloatImm& n) {
        code->constant.d = n.value;
        return Run{RunConstant};
      },
      [&](const Cast& n) { return PickCast(n.value.type().dtype, n.type.dtype); },
      [&](const Unary& n) { return PickUnary(n.op, n.a.type().dtype); },
      [&](const Binary& n) { return PickBinary(n.op, n.a.type().dtype); },
      [](const Select& s) { return Run{ElementsDiffer(s.condition) ? RunVectorSelect : RunSelect}; },
      [&](const Call& n) {
        code->math = PickMath(n.function);
        return PickCall(n.function);
      },
      [&](const Broadcast&) { return Run{RunBroadcast}; }, [](const auto&) { return Run{nullptr}; });
  HONE_CHECK(code->run != nullptr);
  return code;
}

}  // namespace hone::ir::eval

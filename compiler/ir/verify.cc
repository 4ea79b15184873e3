// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verify.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/status.h"
#include "compiler/ir/expr_checker.h"
#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

bool IsCIdentifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!ok) return false;
  }
  return true;
}

class FuncVerifier {
 public:
  absl::Status Run(const Func& func) {
    if (!IsCIdentifier(func.name)) return absl::InvalidArgumentError("its name must be a C identifier");
    for (const Buffer& param : func.params) {
      if (param == nullptr) return absl::InvalidArgumentError("a parameter is missing");
      if (param->scope != Scope::kParam)
        return Illegal("parameter '{}' has scope {}; a parameter must have scope param", param->name,
                       Name(param->scope));
      if (!exprs_.buffers.insert(param.get()).second) return Illegal("parameter '{}' is listed twice", param->name);
    }
    if (func.grid.defined()) {
      has_grid_ = true;
      exprs_.vars.emplace(kGroupVar, kIndexType);
      exprs_.vars.emplace(kLaneVar, kIndexType);
    }
    return Check(func.body);
  }

 private:
  template <typename... Args>
  static absl::Status Illegal(fmt::format_string<Args...> format, Args&&... args) {
    return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
  }

  absl::Status Check(const Stmt& s) {
    if (!s.defined()) return absl::InvalidArgumentError("a statement is missing");
    return Match(
        s, [&](const For& n) { return CheckFor(n); }, [&](const Store& n) { return CheckStore(n); },
        [&](const Block& n) {
          for (const Stmt& child : n.stmts) HONE_RETURN_IF_ERROR(Check(child));
          return absl::OkStatus();
        },
        [&](const If& n) {
          HONE_RETURN_IF_ERROR(exprs_.Check(n.condition));
          if (n.condition.type() != kBoolType)
            return IllegalExpr(n.condition, "the condition of an 'if' must be a bool");
          HONE_RETURN_IF_ERROR(Check(n.then_case));
          return n.else_case.defined() ? Check(n.else_case) : absl::OkStatus();
        },
        [&](const Alloc& n) { return CheckAlloc(n); },
        [&](const Let& n) {
          HONE_RETURN_IF_ERROR(exprs_.Check(n.value));
          return CheckBinding(n.var, n.value.type(), n.body);
        },
        [&](const Barrier&) {
          return has_grid_ ? absl::OkStatus()
                           : absl::InvalidArgumentError("a barrier is allowed only in a func with a grid");
        },
        [&](const Mma& n) {
          return Annotate(CheckMma(n), fmt::format("tensor instruction {}", EntryOf(n.instruction).name));
        },
        [](const MmaWait& n) {
          return n.pending >= 0
                     ? absl::OkStatus()
                     : Illegal("'settle {}': the number of commit groups left in flight must be 0 or more", n.pending);
        },
        [&](const Copy& n) {
          return Annotate(CheckCopy(n), fmt::format("copy to '{}'", n.buffer == nullptr ? "" : n.buffer->name));
        },
        [](const Commit&) { return absl::OkStatus(); },
        [](const Wait& n) {
          return n.pending >= 0
                     ? absl::OkStatus()
                     : Illegal("'wait {}': the number of commit groups left in flight must be 0 or more", n.pending);
        },
        [&](const LaneReduce& n) {
          return Annotate(CheckLaneReduce(n), fmt::format("lane reduction to '{}'", n.place.As<Load>()->buffer->name));
        },
        [&](const Prefetch& n) { return CheckPrefetch(n); });
  }

  absl::Status CheckLaneReduce(const LaneReduce& n) {
    for (const Expr& e : {n.place, n.part, n.value}) HONE_RETURN_IF_ERROR(exprs_.Check(e));
    if (n.mask.defined()) HONE_RETURN_IF_ERROR(exprs_.Check(n.mask));
    HONE_RETURN_IF_ERROR(CheckReduction(n.reduction, n.value.type()));
    if (n.parts >= 2 && n.parts <= kLaneReducePartsMax && std::has_single_bit(static_cast<uint64_t>(n.parts))) {
      return absl::OkStatus();
    }
    return Illegal("it has {} parts; the number must be a power of two from 2 to {}", n.parts, kLaneReducePartsMax);
  }

  absl::Status CheckPrefetch(const Prefetch& n) {
    if (n.buffer == nullptr || !exprs_.buffers.contains(n.buffer.get())) {
      return Illegal("prefetch of '{}', which is neither a parameter nor allocated here",
                     n.buffer == nullptr ? "" : n.buffer->name);
    }
    HONE_RETURN_IF_ERROR(exprs_.Check(n.first));
    if (n.first.type() != kIndexType) return IllegalExpr(n.first, "the index of a prefetch must be an i64");
    return n.count > 0 ? absl::OkStatus() : Illegal("prefetch of {} elements; the number must be 1 or more", n.count);
  }

  absl::Status CheckBinding(const std::string& var, Type type, const Stmt& body) {
    if (!exprs_.vars.emplace(var, type).second)
      return Illegal("variable '{}' is bound again inside its own scope", var);
    const absl::Status status = Check(body);
    exprs_.vars.erase(var);
    return status;
  }

  absl::Status CheckFor(const For& loop) {
    HONE_RETURN_IF_ERROR(Annotate(exprs_.Check(loop.extent), fmt::format("extent of loop '{}'", loop.var)));
    if (loop.extent.type() != kIndexType) return Illegal("the extent of loop '{}' is not an i64", loop.var);
    if (loop.kind != LoopKind::kParallel) return CheckBinding(loop.var, kIndexType, loop.body);
    if (in_parallel_) return Illegal("parallel loop '{}' is inside another parallel loop", loop.var);
    in_parallel_ = true;
    const absl::Status status = CheckBinding(loop.var, kIndexType, loop.body);
    in_parallel_ = false;
    return status;
  }

  absl::Status CheckStore(const Store& store) {
    for (const Expr& index : store.indices) HONE_RETURN_IF_ERROR(exprs_.Check(index));
    if (store.mask.defined()) HONE_RETURN_IF_ERROR(exprs_.Check(store.mask));
    HONE_RETURN_IF_ERROR(exprs_.CheckAccess("store", store.buffer, store.indices, store.mask));
    HONE_RETURN_IF_ERROR(Annotate(exprs_.Check(store.value), fmt::format("store to '{}'", store.buffer->name)));
    const Type place = *AccessType(*store.buffer, store.indices, store.mask);
    if (place == store.value.type()) return absl::OkStatus();
    return Illegal("store of {} to '{}': the destination is {}", ToString(store.value.type()), store.buffer->name,
                   ToString(place));
  }

  // Checks one operand of rows x columns elements whose rows consist of contiguous runs of the given length.
  absl::Status CheckOperand(std::string_view what, const MatrixOperand& operand, DType dtype, int64_t rows,
                            int64_t columns, int64_t chunk) {
    const Load* first = operand.first.As<Load>();
    if (first == nullptr || first->mask.defined() || operand.first.type().width != 1) {
      return Illegal("{} must be a load of its first element, without a mask", what);
    }
    HONE_RETURN_IF_ERROR(exprs_.Check(operand.first));
    const BufferNode& buffer = *first->buffer;
    if (buffer.dtype != dtype) {
      return Illegal("{} '{}' is {}, but the instruction takes {}", what, buffer.name, Name(buffer.dtype), Name(dtype));
    }
    if (rows == 1 && operand.stride != 0)
      return Illegal("{} '{}' has one row, so its stride must be 0, not {}", what, buffer.name, operand.stride);
    if (rows > 1 && operand.stride < 1)
      return Illegal("{} '{}' has {} rows, so its stride must be 1 or more", what, buffer.name, rows);
    const bool whole = chunk == columns;
    if (whole && operand.column_stride != 1) {
      return Illegal("{} '{}' has a column stride ('apart') of {}; it must be 1, because its rows are contiguous", what,
                     buffer.name, operand.column_stride);
    }
    if (!whole && operand.column_stride < chunk) {
      return Illegal("{} '{}' has a column stride ('apart') of {}; it must be {} or more, the elements of a chunk",
                     what, buffer.name, operand.column_stride, chunk);
    }
    const int64_t elements = NumElements(buffer);
    if (std::max(operand.stride, operand.column_stride) > elements) {
      return Illegal("the stride of {} is larger than buffer '{}'", what, buffer.name);
    }
    const int64_t last = whole ? columns - 1 : (columns / chunk - 1) * operand.column_stride + chunk - 1;
    if ((rows - 1) * operand.stride + last >= elements) {
      return Illegal("{} of {} x {} elements, stride {}, reaches beyond the end of buffer '{}'", what, rows, columns,
                     operand.stride, buffer.name);
    }
    return absl::OkStatus();
  }

  absl::Status CheckMma(const Mma& mma) {
    const TensorInstructionEntry& entry = EntryOf(mma.instruction);
    HONE_RETURN_IF_ERROR(CheckOperand("the sum", mma.sum, entry.sum, entry.m, entry.n, entry.n));
    HONE_RETURN_IF_ERROR(CheckOperand("operand a", mma.a, entry.a, entry.m, entry.k, entry.Chunk()));
    HONE_RETURN_IF_ERROR(CheckOperand("operand b", mma.b, entry.b, entry.n, entry.k, entry.Chunk()));
    const Buffer& sum = mma.sum.first.As<Load>()->buffer;
    if (entry.m > 1 && mma.sum.stride < entry.n) {
      return Illegal("the rows of the sum '{}' overlap; the stride must be {} or more", sum->name, entry.n);
    }
    if (entry.b_rows_adjacent && mma.b.stride != entry.k) {
      return Illegal("the rows of b must be contiguous: the stride must be {}, not {}", entry.k, mma.b.stride);
    }
    for (const MatrixOperand* operand : {&mma.a, &mma.b}) {
      if (operand->first.As<Load>()->buffer == sum)
        return Illegal("'{}' is both the sum and an operand; give the sum a buffer of its own", sum->name);
    }
    return absl::OkStatus();
  }

  absl::Status CheckCopy(const Copy& copy) {
    const Load* source = copy.source.As<Load>();
    if (copy.buffer == nullptr || source == nullptr || source->mask.defined()) {
      return absl::InvalidArgumentError("its source must be a load of the first element, without a mask");
    }
    for (const Expr& index : copy.indices) HONE_RETURN_IF_ERROR(exprs_.Check(index));
    HONE_RETURN_IF_ERROR(exprs_.CheckAccess("copy", copy.buffer, copy.indices, {}));
    HONE_RETURN_IF_ERROR(exprs_.Check(copy.source));
    if (copy.mask.defined()) {
      HONE_RETURN_IF_ERROR(exprs_.Check(copy.mask));
      if (copy.mask.type() != kBoolType) return IllegalExpr(copy.mask, "the condition of a copy must be a bool");
    }
    const BufferNode &to = *copy.buffer, &from = *source->buffer;
    if (AccessType(to, copy.indices, {}) != copy.source.type() || copy.source.type().width != 1) {
      return Illegal(
          "its destination has elements of {}, but its source is {} of '{}'; both must be scalars of one type",
          Name(to.dtype), ToString(copy.source.type()), from.name);
    }
    if (!IsShared(to.scope))
      return Illegal("its destination is in {} memory; it must be in shared memory", Name(to.scope));
    if (from.scope != Scope::kParam && from.scope != Scope::kWorkspace) {
      return Illegal("its source is {} '{}'; it must be a parameter or in the workspace", Name(from.scope), from.name);
    }
    const int64_t size = SizeOf(to.dtype);
    const int64_t bytes = std::clamp<int64_t>(copy.count, 0, kBulkCopyBytesMax + 1) *
                          size;  // clamped, so that the product cannot overflow
    if (IsBulkCopy(copy)) {
      const bool few = copy.groups > 0 && copy.groups <= kBulkCopyBytesMax / kBulkCopyAlignmentBytes;
      if (!few || bytes % (kBulkCopyAlignmentBytes * copy.groups) != 0 || bytes > kBulkCopyBytesMax) {
        return Illegal("{} bytes by {} groups; a bulk copy needs a multiple of {} bytes for each group, up to {}",
                       bytes, copy.groups, kBulkCopyAlignmentBytes, kBulkCopyBytesMax);
      }
      if (copy.mask.defined()) return Illegal("a bulk copy must not have a condition");
      if (to.scope == Scope::kSwizzled)
        return Illegal("a bulk copy cannot write swizzled memory, because it does not permute the rows");
    } else if (copy.count < 1 || std::ranges::find(kCopyBytes, bytes) == std::end(kCopyBytes)) {
      return Illegal("{} bytes; a copy by one lane must have {} bytes; a longer one must be a bulk copy", bytes,
                     fmt::join(kCopyBytes, ", "));
    }
    const int64_t aligned = std::min(bytes, kBulkCopyAlignmentBytes);
    if (!IsMultipleOf(to, copy.indices, aligned / size)) {
      return Illegal("its destination is not known to be aligned to {} bytes", aligned);
    }
    if (IsMultipleOf(from, source->indices, aligned / size)) return absl::OkStatus();
    return Illegal("its source in '{}' is not known to be aligned to {} bytes", from.name, aligned);
  }

  absl::Status CheckAlloc(const Alloc& alloc) {
    if (alloc.buffer == nullptr) return absl::InvalidArgumentError("alloc without a buffer");
    const BufferNode& buffer = *alloc.buffer;
    if (buffer.scope == Scope::kParam)
      return Illegal("alloc of '{}' with scope param; only parameters of the func have that scope", buffer.name);
    if (buffer.scope == Scope::kWorkspace && in_parallel_) {
      return Illegal("alloc of '{}' in the workspace, inside a parallel loop; make it local", buffer.name);
    }
    if (!exprs_.buffers.insert(&buffer).second)
      return Illegal("alloc of '{}' is nested in an alloc of the same buffer", buffer.name);
    const absl::Status status = Check(alloc.body);
    exprs_.buffers.erase(&buffer);
    return status;
  }

  ExprChecker exprs_{ExprChecker::Dialect::kFunc};
  bool in_parallel_ = false;
  bool has_grid_ = false;
};

}  // namespace

absl::Status Verify(const Func& func, const GridLimits& limits) {
  absl::Status status = FuncVerifier().Run(func);
  if (status.ok()) status = VerifyCopies(func);
  if (status.ok()) status = VerifyAsyncMma(func);
  if (status.ok() && func.grid.defined()) status = VerifyGrid(func, limits);
  return Annotate(status, fmt::format("func '{}'", func.name));
}

}  // namespace hone::ir

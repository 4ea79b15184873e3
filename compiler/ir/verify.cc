#include "compiler/ir/verify.h"

#include <set>

#include "base/status.h"
#include "compiler/ir/expr_checker.h"
#include "compiler/ir/match.h"
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
    if (!IsCIdentifier(func.name)) return absl::InvalidArgumentError("its name is not a C identifier");
    for (const Buffer& param : func.params) {
      if (param == nullptr) return absl::InvalidArgumentError("a parameter is missing");
      if (param->scope != Scope::kParam) return Illegal("parameter '{}' has another scope than param", param->name);
      if (!exprs_.buffers.insert(param.get()).second) return Illegal("parameter '{}' is there twice", param->name);
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
          if (n.condition.type() != kBoolType) return IllegalExpr(n.condition, "the condition of an if is a bool");
          HONE_RETURN_IF_ERROR(Check(n.then_case));
          return n.else_case.defined() ? Check(n.else_case) : absl::OkStatus();
        },
        [&](const Alloc& n) { return CheckAlloc(n); },
        [&](const Let& n) {
          HONE_RETURN_IF_ERROR(exprs_.Check(n.value));
          return CheckBinding(n.var, n.value.type(), n.body);
        },
        [&](const Barrier&) {
          return has_grid_ ? absl::OkStatus() : absl::InvalidArgumentError("a barrier in a func without a grid");
        });
  }

  absl::Status CheckBinding(const std::string& var, Type type, const Stmt& body) {
    if (!exprs_.vars.emplace(var, type).second) return Illegal("variable '{}' is bound inside its own scope", var);
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
    return Illegal("store of {} to '{}', where the place is {}", ToString(store.value.type()), store.buffer->name,
                   ToString(place));
  }

  absl::Status CheckAlloc(const Alloc& alloc) {
    if (alloc.buffer == nullptr) return absl::InvalidArgumentError("alloc without a buffer");
    const BufferNode& buffer = *alloc.buffer;
    if (buffer.scope == Scope::kParam) return Illegal("alloc of '{}', whose scope is param", buffer.name);
    if (buffer.scope == Scope::kWorkspace && in_parallel_) {
      return Illegal("alloc of '{}' in the workspace, inside a parallel loop; make it local", buffer.name);
    }
    if (!exprs_.buffers.insert(&buffer).second) return Illegal("alloc of '{}' inside its own body", buffer.name);
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
  if (status.ok() && func.grid.defined()) status = VerifyGrid(func, limits);
  return Annotate(status, fmt::format("func '{}'", func.name));
}

}  // namespace hone::ir

// The rules of a Func with a grid: what a group of lanes may and may not do. See docs/IR.md, "Lanes".
#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr size_t kMostText = 120;

std::string Short(const Expr& e) {
  std::string text = Print(e);
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
  return text;
}

class GridVerifier {
 public:
  explicit GridVerifier(const GridLimits& limits) : limits_(limits) { divergent_.insert(kLaneVar); }

  absl::Status Run(const Func& func) {
    if (func.grid.groups < 1) return absl::InvalidArgumentError("its grid has no groups");
    if (func.grid.lanes > limits_.max_lanes) {
      return absl::InvalidArgumentError(
          fmt::format("its groups have {} lanes; the target allows {}", func.grid.lanes, limits_.max_lanes));
    }
    return Check(func.body);
  }

 private:
  template <typename... Args>
  static absl::Status Illegal(fmt::format_string<Args...> format, Args&&... args) {
    return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
  }

  // Whether lanes of a group may have different values of it. A load from a param or shared buffer gives all lanes the
  // same if they ask for the same element.
  bool IsDivergent(const Expr& e) const {
    bool divergent = false;
    ForEachExpr(e, [&](const Expr& x) {
      if (const Var* var = x.As<Var>()) divergent |= divergent_.contains(var->name);
      if (const Load* load = x.As<Load>()) divergent |= load->buffer->scope == Scope::kLocal;
    });
    return divergent;
  }

  absl::Status Check(const Stmt& s) {
    return Match(
        s, [&](const For& n) { return CheckFor(n); }, [](const Store&) { return absl::OkStatus(); },
        [&](const Block& n) {
          for (const Stmt& child : n.stmts) {
            HONE_RETURN_IF_ERROR(n.name.empty() ? Check(child)
                                                : Annotate(Check(child), fmt::format("block '{}'", n.name)));
          }
          return absl::OkStatus();
        },
        [&](const If& n) { return CheckIf(n); }, [&](const Alloc& n) { return CheckAlloc(n); },
        [&](const Let& n) {
          const bool divergent = IsDivergent(n.value);
          if (divergent) divergent_.insert(n.var);
          const absl::Status status = Check(n.body);
          if (divergent) divergent_.erase(n.var);
          return status;
        },
        [&](const Barrier&) { return Together("a barrier"); }, [](const Contract&) { return absl::OkStatus(); },
        [](const Copy&) { return absl::OkStatus(); }, [&](const Commit&) { return Together("a commit"); },
        [&](const Wait&) { return Together("a wait"); }, [](const Prefetch&) { return absl::OkStatus(); });
  }

  // Lanes that count bundles differently would wait for different ones.
  absl::Status Together(std::string_view what) const {
    if (why_divergent_.empty()) return absl::OkStatus();
    return Illegal("{} where lanes of a group may part: inside {}", what, why_divergent_);
  }

  // Checks `s` knowing that lanes part before it for the reason given, if any.
  absl::Status CheckApart(const Stmt& s, bool divergent, const std::string& reason) {
    const std::string before = why_divergent_;
    if (divergent && why_divergent_.empty()) why_divergent_ = reason;
    const absl::Status status = Check(s);
    why_divergent_ = before;
    return status;
  }

  absl::Status CheckFor(const For& loop) {
    if (loop.kind == LoopKind::kParallel || loop.kind == LoopKind::kGroup || loop.kind == LoopKind::kLane) {
      return Illegal("loop '{}' is {} inside a func with a grid", loop.var,
                     loop.kind == LoopKind::kParallel ? "parallel" : "bound");
    }
    return CheckApart(loop.body, IsDivergent(loop.extent),
                      fmt::format("loop '{}' with extent {}", loop.var, Short(loop.extent)));
  }

  absl::Status CheckIf(const If& branch) {
    const bool divergent = IsDivergent(branch.condition);
    const std::string reason = "'if " + Short(branch.condition) + "'";
    HONE_RETURN_IF_ERROR(CheckApart(branch.then_case, divergent, reason));
    return branch.else_case.defined() ? CheckApart(branch.else_case, divergent, reason) : absl::OkStatus();
  }

  absl::Status CheckAlloc(const Alloc& alloc) {
    const BufferNode& buffer = *alloc.buffer;
    if (buffer.scope == Scope::kWorkspace) {
      return Illegal("alloc of '{}' in the workspace, inside a func with a grid; make it a param", buffer.name);
    }
    if (buffer.scope != Scope::kShared) return Check(alloc.body);
    if (!why_divergent_.empty()) return Illegal("alloc of shared '{}' inside {}", buffer.name, why_divergent_);
    shared_bytes_ += NumBytes(buffer);
    if (shared_bytes_ > limits_.shared_bytes) {
      return Illegal("alloc of '{}' takes the shared memory of a group to {} bytes; the target has {}", buffer.name,
                     shared_bytes_, limits_.shared_bytes);
    }
    const absl::Status status = Check(alloc.body);
    shared_bytes_ -= NumBytes(buffer);
    return status;
  }

  const GridLimits limits_;
  std::set<std::string, std::less<>> divergent_;  // variables that lanes may disagree about
  std::string why_divergent_;                     // empty where all lanes of a group are
  int64_t shared_bytes_ = 0;
};

}  // namespace

absl::Status VerifyGrid(const Func& func, const GridLimits& limits) { return GridVerifier(limits).Run(func); }

}  // namespace hone::ir

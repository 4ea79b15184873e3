#include "compiler/passes/pipeline.h"

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/flatten.h"
#include "compiler/passes/peel.h"
#include "compiler/passes/unroll.h"
#include "compiler/passes/vectorize.h"

namespace hone::passes {
namespace {

class Runner {
 public:
  Runner(ir::Func* func, const LowerOptions& options) : func_(func), options_(options) {}

  template <typename Pass>
  absl::Status Run(std::string_view name, Pass&& pass) {
    HONE_ASSIGN_OR_RETURN(func_->body, absl::StatusOr<ir::Stmt>(pass(func_->body)));
    if (options_.dump) options_.dump(name, *func_);
    if (!options_.verify) return absl::OkStatus();
    const absl::Status legal = ir::Verify(*func_);
    if (legal.ok()) return legal;
    return absl::InternalError("pass " + std::string(name) + " made illegal IR: " + std::string(legal.message()));
  }

 private:
  ir::Func* func_;
  const LowerOptions& options_;
};

absl::Status LowerFunc(ir::Func* func, const LowerOptions& options) {
  const auto simplify = [](const ir::Stmt& s) { return ir::Simplify(s); };
  Runner runner(func, options);
  HONE_RETURN_IF_ERROR(runner.Run("build_loops", simplify));
  HONE_RETURN_IF_ERROR(runner.Run("peel", [](const ir::Stmt& s) { return ir::Simplify(Peel(s)); }));
  HONE_RETURN_IF_ERROR(runner.Run("flatten", [](const ir::Stmt& s) { return ir::Simplify(Flatten(s)); }));
  HONE_RETURN_IF_ERROR(runner.Run("vectorize", Vectorize));
  HONE_RETURN_IF_ERROR(runner.Run("unroll", Unroll));
  return runner.Run("simplify", simplify);
}

}  // namespace

absl::StatusOr<Loops> Lower(const schedule::State& state, const std::string& name, const LowerOptions& options) {
  HONE_ASSIGN_OR_RETURN(Loops loops, BuildLoops(state, name));
  HONE_RETURN_IF_ERROR(LowerFunc(&loops.main, options));
  if (loops.prepare.body.defined()) HONE_RETURN_IF_ERROR(LowerFunc(&loops.prepare, options));
  return loops;
}

int64_t WorkspaceBytes(const ir::Func& func) {
  int64_t bytes = 0;
  const std::function<void(const ir::Stmt&)> visit = [&](const ir::Stmt& s) {
    if (const ir::Alloc* alloc = s.As<ir::Alloc>(); alloc != nullptr && alloc->buffer->scope == ir::Scope::kWorkspace) {
      bytes += (ir::NumBytes(*alloc->buffer) + 63) / 64 * 64;
    }
    ir::ForEachChild(s, visit, [](const ir::Expr&) {});
  };
  if (func.body.defined()) visit(func.body);
  return bytes;
}

}  // namespace hone::passes

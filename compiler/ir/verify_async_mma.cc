// SPDX-License-Identifier: Apache-2.0
// Static checks of asynchronous tensor instructions (wgmma): no statement uses accumulators that one may still be
// changing, and every instruction is waited for. The interpreter finds operands that are overwritten too early.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/verify.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

// Returns the instruction if it reads shared memory itself and so runs asynchronously, else null.
const Mma* AsAsyncMma(const Stmt& s) {
  const Mma* mma = s.As<Mma>();
  return mma != nullptr && EntryOf(mma->instruction).is_async ? mma : nullptr;
}

const BufferNode* BufferOf(const MatrixOperand& operand) { return operand.first.As<Load>()->buffer.get(); }

class AsyncMmaVerifier {
 public:
  absl::Status Run(const Func& func) {
    HONE_RETURN_IF_ERROR(Check(func.body));
    if (running_.empty()) return absl::OkStatus();
    return InFlightError(BufferOf(running_[0]->sum), "is not complete at the end of the func");
  }

 private:
  static absl::Status InFlightError(const BufferNode* buffer, const char* what) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' {} while a tensor instruction may still use it; wait for the instruction first ('settle')",
                    buffer->name, what));
  }

  void Begin(const std::vector<const Mma*>& products) {
    for (const Mma* product : products) {
      if (std::ranges::find(running_, product) == running_.end()) running_.push_back(product);
    }
  }

  bool IsSum(const BufferNode* buffer) const {
    return std::ranges::any_of(running_, [&](const Mma* c) { return BufferOf(c->sum) == buffer; });
  }

  absl::Status Check(const Stmt& s) {
    if (const Mma* product = AsAsyncMma(s)) {
      Begin({product});
      return absl::OkStatus();
    }
    if (const MmaWait* wait = s.As<MmaWait>()) {
      if (wait->pending == 0) running_.clear();
      return absl::OkStatus();
    }
    if (!running_.empty()) HONE_RETURN_IF_ERROR(CheckUses(s));
    if (const If* branch = s.As<If>()) return CheckIf(*branch);
    if (s.As<For>() != nullptr) return CheckLoop(s);
    HONE_RETURN_IF_ERROR(CheckChildren(s));
    const Alloc* alloc = s.As<Alloc>();
    return alloc == nullptr ? absl::OkStatus() : CheckEnd(alloc->buffer.get());
  }

  absl::Status CheckChildren(const Stmt& s) {
    absl::Status status;
    ForEachChild(s, [&](const Stmt& child) { status.Update(Check(child)); }, [](const Expr&) {});
    return status;
  }

  // Checks the body twice, because the next iteration starts with what this one left in flight. The result is cached by
  // what was in flight at entry. Without the cache each level of nesting would double the work.
  absl::Status CheckLoop(const Stmt& s) {
    const auto [known, is_new] = left_by_.try_emplace({&s.node(), running_});
    if (is_new) {
      HONE_RETURN_IF_ERROR(CheckChildren(s));
      if (!running_.empty()) HONE_RETURN_IF_ERROR(CheckChildren(s));
      known->second = running_;
    }
    running_ = known->second;
    return absl::OkStatus();
  }

  absl::Status CheckIf(const If& branch) {
    const std::vector<const Mma*> before = running_;
    HONE_RETURN_IF_ERROR(Check(branch.then_case));
    const std::vector<const Mma*> after = std::exchange(running_, before);
    if (branch.else_case.defined()) HONE_RETURN_IF_ERROR(Check(branch.else_case));
    Begin(after);
    return absl::OkStatus();
  }

  // Checks the buffers that this statement itself reads and writes.
  absl::Status CheckUses(const Stmt& s) const {
    if (const Buffer written = WrittenBuffer(s); written != nullptr && IsSum(written.get())) {
      return InFlightError(written.get(), "is written");
    }
    absl::Status status;
    ForEachOwnLoad(s, [&](const Load& load) {
      if (IsSum(load.buffer.get())) status.Update(InFlightError(load.buffer.get(), "is read"));
    });
    return status;
  }

  absl::Status CheckEnd(const BufferNode* buffer) const {
    const bool used = std::ranges::any_of(running_, [&](const Mma* c) {
      return BufferOf(c->sum) == buffer || BufferOf(c->a) == buffer || BufferOf(c->b) == buffer;
    });
    return used ? InFlightError(buffer, "is freed") : absl::OkStatus();
  }

  using Products = std::vector<const Mma*>;
  Products running_;  // started and not surely finished
  std::map<std::pair<const StmtNode*, Products>, Products>
      left_by_;  // cache of CheckLoop, by loop and by what was in flight at its start
};

}  // namespace

absl::Status VerifyAsyncMma(const Func& func) { return AsyncMmaVerifier().Run(func); }

}  // namespace hone::ir

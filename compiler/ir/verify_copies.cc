// SPDX-License-Identifier: Apache-2.0
// Static checks of asynchronous copies: no read before the data can have arrived, and no more commit groups in flight
// than the hardware can tell apart. The order of copies, commits and waits decides both without running the code.
//
// Every loop is followed through its first iteration, where the commit groups can be counted. Elsewhere (after a loop
// that commits, in a branch inside such a loop) all copies count as arrived, so that no legal program is refused.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/verify.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

bool Commits(const Stmt& s) {
  return AnyStmt(s, [](const Stmt& x) { return x.As<Commit>() != nullptr; });
}

class CopyVerifier {
 public:
  // A func without a grid still holds several launches; the copies of one launch do not limit those of another.
  explicit CopyVerifier(const Func& func) : groups_copy_(func.grid.defined() && HasBulkCopies(func.body)) {}

  absl::Status Check(const Stmt& s) {
    HONE_RETURN_IF_ERROR(CheckReads(s));
    if (const For* loop = s.As<For>()) return CheckFor(*loop);
    if (const If* branch = s.As<If>()) return CheckIf(*branch);
    if (const Alloc* alloc = s.As<Alloc>()) return CheckAlloc(*alloc);
    if (const Copy* copy = s.As<Copy>()) {
      first_.try_emplace(copy->buffer.get(), committed_);
    } else if (s.As<Commit>() != nullptr) {
      ++committed_;
      if (groups_copy_ && counted_ && committed_ - arrived_ > kCommitGroupsMax) {
        return absl::InvalidArgumentError(fmt::format("{} commit groups are in flight; bulk copies allow up to {}",
                                                      committed_ - arrived_, kCommitGroupsMax));
      }
    } else if (const Wait* wait = s.As<Wait>()) {
      arrived_ = std::max(arrived_, counted_ ? committed_ - wait->pending : committed_);
      left_ = wait->pending;
    } else if (const Buffer written = WrittenBuffer(s)) {
      first_[written.get()] = -1;  // also written by a statement that is no copy
    }
    return CheckChildren(s);
  }

 private:
  absl::Status CheckChildren(const Stmt& s) {
    absl::Status status;
    const Block* block = s.As<Block>();
    ForEachChild(
        s,
        [&](const Stmt& child) {
          if (!status.ok()) return;
          status = Check(child);
          if (block != nullptr && !block->name.empty())
            status = Annotate(status, fmt::format("block '{}'", block->name));
        },
        [](const Expr&) {});
    return status;
  }

  bool Arrived(const BufferNode* buffer) const {
    const auto first = first_.find(buffer);
    return first == first_.end() || first->second < arrived_;
  }

  // Checks the loads of this statement, not those of statements inside it.
  absl::Status CheckReads(const Stmt& s) const {
    absl::Status status;
    ForEachOwnLoad(s, [&](const Load& load) {
      if (Arrived(load.buffer.get())) return;
      status = absl::InvalidArgumentError(fmt::format(
          "'{}' is read while every copy to it is in flight: {}", load.buffer->name,
          left_ < 0 ? "there is no wait before the read"
                    : fmt::format("the last wait leaves {} of {} commit groups in flight", left_, committed_)));
    });
    return status;
  }

  absl::Status CheckFor(const For& loop) {
    const bool counted = counted_;
    const bool commits = Commits(loop.body);
    // A loop with a variable extent may have no iteration the first time and some later.
    const bool surely = loop.extent.As<IntImm>() != nullptr;
    if (in_committing_loop_ && !surely) counted_ = false;
    const bool outer = in_committing_loop_;
    in_committing_loop_ |= commits;
    const absl::Status status = Check(loop.body);
    in_committing_loop_ = outer;
    counted_ = counted && !commits;
    return status;
  }

  absl::Status CheckIf(const If& branch) {
    const bool counted = counted_;
    if (in_committing_loop_) counted_ = false;  // the branch may be taken only in later iterations
    const int64_t committed = committed_, arrived = arrived_;
    HONE_RETURN_IF_ERROR(Check(branch.then_case));
    const int64_t then_committed = std::exchange(committed_, committed),
                  then_arrived = std::exchange(arrived_, arrived);
    if (branch.else_case.defined()) HONE_RETURN_IF_ERROR(Check(branch.else_case));
    counted_ = counted && committed_ == committed && then_committed == committed;
    committed_ = std::max(committed_, then_committed);
    arrived_ = std::max(arrived_, then_arrived);
    return absl::OkStatus();
  }

  absl::Status CheckAlloc(const Alloc& alloc) {
    const BufferNode* const buffer = alloc.buffer.get();
    first_.erase(buffer);
    HONE_RETURN_IF_ERROR(Check(alloc.body));
    const bool arrived = Arrived(buffer);
    first_.erase(buffer);
    if (arrived) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the memory of '{}' is freed while every copy to it is in flight; add a wait", buffer->name));
  }

  const bool groups_copy_;
  // Per buffer: the number of commits before the first copy to it; -1 if another statement writes it as well.
  std::map<const BufferNode*, int64_t> first_;
  int64_t committed_ = 0;
  int64_t arrived_ = 0;  // upper bound on the commit groups that have arrived
  int64_t left_ = -1;    // commit groups that the last wait left in flight; -1: there was no wait
  bool counted_ = true;  // whether committed_ is exact
  bool in_committing_loop_ = false;
};

}  // namespace

absl::Status VerifyCopies(const Func& func) { return CopyVerifier(func).Check(func.body); }

}  // namespace hone::ir

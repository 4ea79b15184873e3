// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_queue.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace hone::tuner {

void BuildQueue::Push(BuildTask task) {
  std::erase_if(turns_, [&](const auto& taken) { return taken.second <= turn_; });
  int64_t& last = turns_[task.owner.job];
  last = std::max(last, turn_) + 1;
  const bool compiles = task.request.kind != BuildRequest::Kind::kLink;
  waiting_.emplace(Rank{compiles, -task.owner.priority, last, pushed_++}, std::move(task));
}

BuildTask BuildQueue::Pop() {
  HONE_CHECK(!waiting_.empty());
  auto first = waiting_.extract(waiting_.begin());
  turn_ = std::max(turn_, std::get<2>(first.key()));
  return std::move(first.mapped());
}

}  // namespace hone::tuner

// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/copy_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/ir/copy.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr int kInFlightByte = 0xff;

size_t BytesOf(const CopyQueue::Entry& entry) { return static_cast<size_t>(entry.count * SizeOf(entry.buffer->dtype)); }

}  // namespace

void CopyQueue::Begin(Entry entry) {
  const size_t bytes = BytesOf(entry);
  if (entry.from != nullptr) entry.seen.assign(entry.from, entry.from + bytes);
  std::memset(entry.to, kInFlightByte, bytes);
  open_.push_back(std::move(entry));
}

std::string CopyQueue::Commit() {
  commit_groups_.push_back(std::exchange(open_, {}));
  if (static_cast<int64_t>(commit_groups_.size()) <= kCommitGroupsMax) return "";
  const auto is_bulk = [](const auto& commit_group) { return std::ranges::any_of(commit_group, &Entry::is_bulk); };
  if (std::ranges::none_of(commit_groups_, is_bulk)) return "";
  return fmt::format("{} commit groups are in flight; bulk copies allow up to {}", commit_groups_.size(),
                     kCommitGroupsMax);
}

std::string CopyQueue::Wait(int64_t pending, RaceLog* races) {
  while (static_cast<int64_t>(commit_groups_.size()) > pending) {
    for (const Entry& entry : commit_groups_.front()) {
      if (std::string error = CompleteCopy(entry, races); !error.empty()) return error;
    }
    commit_groups_.pop_front();
  }
  return "";
}

bool CopyQueue::HasCopyInFlightTo(const BufferNode* buffer) const {
  const auto fills = [&](const Entry& entry) { return entry.buffer == buffer; };
  return std::ranges::any_of(open_, fills) || std::ranges::any_of(commit_groups_, [&](const auto& commit_group) {
           return std::ranges::any_of(commit_group, fills);
         });
}

std::string CopyQueue::CompleteCopy(const Entry& entry, RaceLog* races) {
  for (int64_t i = 0; races != nullptr && i < entry.count; ++i) {
    races->EndCopy(entry.buffer, entry.to_offset + i);
    if (entry.from == nullptr) continue;
    if (std::string raced = races->Read(entry.source, entry.from_offset + i); !raced.empty()) return raced;
  }
  if (entry.from == nullptr) {
    std::memset(entry.to, 0, BytesOf(entry));
    return "";
  }
  if (std::memcmp(entry.from, entry.seen.data(), BytesOf(entry)) != 0) {
    return fmt::format("'{}' changed while {} elements from element {} were copied to '{}'", entry.source->name,
                       entry.count, entry.from_offset, entry.buffer->name);
  }
  std::memcpy(entry.to, entry.from, BytesOf(entry));
  return "";
}

}  // namespace hone::ir

// SPDX-License-Identifier: Apache-2.0
// Bulk copies, and the mbarriers that count the bytes that have arrived.
//
// A copy arrives when a lane waits for it, and not before. Until then no lane may use its destination.
#include <algorithm>
#include <cstring>

#include "fmt/format.h"
#include "tests/ptx/group.h"

namespace hone::ptx {
namespace {

constexpr uint64_t kMbarrierBytes = 8, kAlignment = 16;

}  // namespace

Group::Mbarrier* Group::FindMbarrier(const Instruction& i, const Lane& lane, uint64_t address) {
  if (Reach(i, lane, Space::kShared, address, kMbarrierBytes, false) == nullptr) return nullptr;
  const auto mbarrier = mbarriers_.find(address - kSharedBegin);
  if (mbarrier != mbarriers_.end() && mbarrier->second.made > 0) return &mbarrier->second;
  Fail(absl::StatusCode::kFailedPrecondition, i, lane,
       fmt::format("uses the object at byte {} of shared memory, which is not initialized, fenced and behind a barrier",
                   address - kSharedBegin));
  return nullptr;
}

bool Group::UseMbarrier(const Instruction& i, const Lane& lane) {
  if (i.kind == Kind::kBulkCopy) return BeginBulkCopy(i, lane);
  if (i.kind == Kind::kFenceMbarriers) {
    for (auto& [offset, mbarrier] : mbarriers_) mbarrier.fenced = true;
    return true;
  }
  const uint64_t address = lane.slots[i.a] + static_cast<uint64_t>(i.offset), number = lane.slots[i.b];
  if (i.kind == Kind::kInitMbarrier) {
    if (Reach(i, lane, Space::kShared, address, kMbarrierBytes, true) == nullptr) return false;
    mbarriers_[address - kSharedBegin] = {.arrivals = number, .missing = number};
    return true;
  }
  Mbarrier* const mbarrier = FindMbarrier(i, lane, address);
  if (mbarrier == nullptr) return false;
  if (i.kind == Kind::kAnnounce) {
    mbarrier->bytes += static_cast<int64_t>(static_cast<uint32_t>(number));
    return true;
  }
  if (mbarrier->missing == 0) {
    return Fail(absl::StatusCode::kFailedPrecondition, i, lane, "arrives at an object that waits only for bytes");
  }
  --mbarrier->missing;
  return true;
}

bool Group::BeginBulkCopy(const Instruction& i, const Lane& lane) {
  const auto operand = [&](uint32_t n) { return lane.slots[kernel_.lists[i.list + n]]; };
  Copy copy{lane.slots[i.to] - kSharedBegin, lane.slots[i.a] + static_cast<uint64_t>(i.offset),
            static_cast<uint32_t>(operand(0)), static_cast<uint32_t>(operand(0))};
  if (copy.from % kAlignment != 0 || copy.to % kAlignment != 0 || copy.bytes % kAlignment != 0 || copy.bytes == 0) {
    return Fail(absl::StatusCode::kDataLoss, i, lane,
                fmt::format("copies {} bytes from {:#x} to {}, which is not aligned", copy.bytes, copy.from, copy.to));
  }
  if (ReachGlobal(i, lane, copy.from, copy.bytes, false) == nullptr) return false;
  if (existing_bytes_ < copy.bytes) {
    return Fail(absl::StatusCode::kOutOfRange, i, lane,
                fmt::format("copies {} bytes from {:#x}, of which {} are outside of the launch's memory", copy.bytes,
                            copy.from, copy.bytes - existing_bytes_));
  }
  if (i.count == 2) return Expect(i, lane, *this, copy, operand(1));
  const auto groups = static_cast<uint32_t>(operand(2) & 0xffff);
  if (groups >> cluster_.size() != 0) {
    return Fail(absl::StatusCode::kOutOfRange, i, lane,
                fmt::format("copies to the groups {:#b} of {}", groups, cluster_.size()));
  }
  for (size_t n = 0; n < cluster_.size(); ++n) {
    if ((groups >> n & 1) == 0 || cluster_[n]->Expect(i, lane, *this, copy, operand(1))) continue;
    error_ = cluster_[n]->error_;
    return false;
  }
  return true;
}

// A copy to this group's memory, which this group's own mbarrier counts. A copy by another group must come after the
// last use of the memory: this group must have arrived since, and the other must have waited for it. If lanes used the
// memory, the arrival must be a release.
bool Group::Expect(const Instruction& i, const Lane& lane, const Group& from, const Copy& copy, uint64_t mbarrier) {
  if (copy.to > shared_.size() || copy.bytes > shared_.size() - copy.to) {
    return Fail(absl::StatusCode::kOutOfRange, i, lane,
                fmt::format("copies {} bytes to {} of {} bytes of shared memory", copy.bytes, copy.to, shared_.size()));
  }
  Mbarrier* const teller = FindMbarrier(i, lane, mbarrier);
  if (teller == nullptr || (&from == this && !TouchShared(i, lane, copy.to, copy.bytes, true))) return false;
  for (uint64_t at = copy.to; at < copy.to + copy.bytes; ++at) {
    SharedUse& touch = touches_[at];
    const bool known = touch.arrived < from.waited_ && (!touch.by_lane || touch.arrived < released_);
    const bool used = touch.read + touch.written > 0 && !known;
    if (&from != this && (used || touch.copier != 0 || teller->made > from.waited_)) {
      return Fail(absl::StatusCode::kFailedPrecondition, i, lane,
                  fmt::format("of group {} copies to byte {} of shared memory, which group {} may still use",
                              from.number_, at, number_));
    }
    touch.copier = kByGroup;
  }
  teller->copies.push_back(copy);
  return true;
}

// Waits for the phase with the given lowest bit. Copies of an mbarrier that no lane waits for do not arrive.
bool Group::TryWait(Lane* lane) {
  const Instruction& i = Next(*lane);
  Mbarrier* const mbarrier = FindMbarrier(i, *lane, lane->slots[i.a] + static_cast<uint64_t>(i.offset));
  if (mbarrier == nullptr) return false;
  const auto done = [&] { return (mbarrier->phase & 1) != (lane->slots[i.b] & 1); };
  if (!done()) Deliver(mbarrier);
  if (!done()) return false;
  lane->slots[i.to] = 1;
  Release({lane, 1});
  return true;
}

void Group::Deliver(Mbarrier* mbarrier) {
  for (const Copy& copy : std::exchange(mbarrier->copies, {})) {
    std::memcpy(shared_.data() + copy.to, reinterpret_cast<const std::byte*>(copy.from), copy.bytes);
    mbarrier->bytes -= copy.bytes;
    for (uint64_t at = copy.to; at < copy.to + copy.bytes; ++at) {
      touches_[at] = {};
      if (!unseen_.empty()) unseen_[at] = 0;
    }
  }
  if (mbarrier->missing > 0 || mbarrier->bytes != 0) return;
  ++mbarrier->phase;
  mbarrier->missing = mbarrier->arrivals;
}

absl::Status Group::CheckArrived() const {
  for (const auto& [offset, mbarrier] : mbarriers_) {
    if (mbarrier.copies.empty() && mbarrier.bytes == 0) continue;
    return absl::FailedPreconditionError(
        fmt::format("kernel '{}': group {} ends before the copies that the object at byte {} of its shared memory "
                    "counts have arrived",
                    kernel_.name, number_, offset));
  }
  return absl::OkStatus();
}

}  // namespace hone::ptx

// SPDX-License-Identifier: Apache-2.0
// Accesses of lanes to memory, their copies, and barriers.
#include <algorithm>
#include <array>
#include <cstring>

#include "fmt/format.h"
#include "tests/ptx/group.h"

namespace hone::ptx {
namespace {

constexpr uint16_t kFenced = 0xffff;   // as the writer of a byte
constexpr uint16_t kSeveral = 0xffff;  // as its reader: more than one lane

}  // namespace

// For a read, only the first byte must belong to the launch. LLVM reads three elements as four, and devices allocate
// memory in units that an aligned access does not leave.
std::byte* Group::ReachGlobal(const Instruction& i, const Lane& lane, uint64_t address, uint64_t bytes, bool writes) {
  if (kernel_.waits_for_grids && !lane.waited_for_grids) {
    Fail(absl::StatusCode::kFailedPrecondition, i, lane,
         fmt::format("{} at {:#x}, which a grid before may still use", writes ? "writes" : "reads", address));
    return nullptr;
  }
  const uint64_t needed = writes ? bytes : 1;
  const auto has = [&](const Memory& memory) {
    return address >= memory.begin && address - memory.begin <= memory.bytes &&
           needed <= memory.bytes - (address - memory.begin);
  };
  if (last_memory_ >= launch_.memory.size() || !has(launch_.memory[last_memory_])) {
    const auto after = std::ranges::upper_bound(launch_.memory, address, {}, &Memory::begin);
    if (after == launch_.memory.begin() || !has(*(after - 1))) {
      Fail(absl::StatusCode::kOutOfRange, i, lane,
           fmt::format("{} {} bytes at {:#x}, which is outside of the launch's memory", writes ? "writes" : "reads",
                       bytes, address));
      return nullptr;
    }
    last_memory_ = static_cast<size_t>(after - launch_.memory.begin()) - 1;
  }
  const Memory& memory = launch_.memory[last_memory_];
  existing_bytes_ = std::min(bytes, memory.begin + memory.bytes - address);
  if (writes) uses_[last_memory_].written = &i;
  if (i.only_read) uses_[last_memory_].only_read = &i;
  return reinterpret_cast<std::byte*>(address);
}

std::byte* Group::Reach(const Instruction& i, const Lane& lane, Space space, uint64_t address, uint64_t bytes,
                        bool writes) {
  if (address % bytes != 0) {
    Fail(absl::StatusCode::kDataLoss, i, lane,
         fmt::format("{} {} bytes at {:#x}, which is not aligned", writes ? "writes" : "reads", bytes, address));
    return nullptr;
  }
  if (space == Space::kGeneric) {
    space = address >= kLocalWindow ? Space::kLocal : address >= kSharedWindow ? Space::kShared : Space::kGlobal;
    address -= space == Space::kLocal ? kLocalWindow : space == Space::kShared ? kSharedWindow : 0;
  }
  if (space == Space::kGlobal) return ReachGlobal(i, lane, address, bytes, writes);
  const bool is_shared = space == Space::kShared;
  const uint64_t begin = is_shared ? kSharedBegin : kLocalBegin;
  const uint64_t size = is_shared ? shared_.size() : kernel_.local_bytes;
  const uint64_t needed = writes ? bytes : 1;
  if (address < begin || address - begin > size || needed > size - (address - begin)) {
    Fail(absl::StatusCode::kOutOfRange, i, lane,
         fmt::format("{} {} bytes at {} of {} bytes of {} memory", writes ? "writes" : "reads", bytes,
                     static_cast<int64_t>(address - begin), size, is_shared ? "shared" : "local"));
    return nullptr;
  }
  existing_bytes_ = std::min(bytes, size - (address - begin));
  if (is_shared && !TouchShared(i, lane, address - begin, existing_bytes_, writes)) return nullptr;
  return (is_shared ? shared_.data() : lane.local) + (address - begin);
}

// Between two barriers, no lane may use bytes that another lane writes. No lane may use bytes that a copy is writing.
bool Group::TouchShared(const Instruction& i, const Lane& lane, uint64_t offset, uint64_t bytes, bool writes) {
  const auto own = static_cast<uint16_t>(lane.number + 1);
  const auto fails = [&](uint64_t at, std::string_view why) {
    return Fail(absl::StatusCode::kFailedPrecondition, i, lane,
                fmt::format("{} byte {} of shared memory, {}", writes ? "writes" : "reads", at, why));
  };
  for (uint64_t at = offset; at < offset + bytes; ++at) {
    SharedUse& touch = touches_[at];
    touch.arrived = arrived_;
    touch.by_lane = true;
    if (touch.copier == kByGroup) return fails(at, "which a group is copying to");
    if (touch.copier != 0) return fails(at, fmt::format("which lane {} is copying to", touch.copier - 1));
    if (touch.written == barrier_ && touch.writer != own) {
      return fails(at, fmt::format("which lane {} wrote since the last barrier", touch.writer - 1));
    }
    if (writes) {
      if (touch.read == barrier_ && touch.reader != own) return fails(at, "which others read since the last barrier");
      touch.written = barrier_;
      touch.writer = own;
    } else {
      touch.reader = touch.read == barrier_ && touch.reader != own ? kSeveral : own;
      touch.read = barrier_;
    }
  }
  return true;
}

bool Group::Load(const Instruction& i, Lane* lane) {
  uint64_t* const s = lane->slots;
  const uint64_t bytes = uint64_t{i.bytes} * i.count;
  const std::byte* from = Reach(i, *lane, i.space, s[i.a] + static_cast<uint64_t>(i.offset), bytes, false);
  if (from == nullptr) return false;
  std::array<std::byte, 32> padded;
  if (existing_bytes_ < bytes) {
    padded.fill(std::byte{kUnset});
    std::copy_n(from, existing_bytes_, padded.data());
    from = padded.data();
  }
  const int unused = 64 - 8 * i.bytes;
  for (uint32_t n = 0; n < i.count; ++n, from += i.bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from, i.bytes);
    if (i.is_signed) value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    s[kernel_.lists[i.list + n]] = value;
  }
  return true;
}

bool Group::Store(const Instruction& i, Lane* lane) {
  const uint64_t* const s = lane->slots;
  const uint32_t bytes = uint32_t{i.bytes} * i.count;
  std::byte* to = Reach(i, *lane, i.space, s[i.a] + static_cast<uint64_t>(i.offset), bytes, true);
  if (to == nullptr) return false;
  if (!unseen_.empty() && to >= shared_.data() && to < shared_.data() + shared_.size()) {
    MarkWritten(static_cast<uint64_t>(to - shared_.data()), bytes, lane);
  }
  for (uint32_t n = 0; n < i.count; ++n, to += i.bytes) std::memcpy(to, &s[kernel_.lists[i.list + n]], i.bytes);
  return true;
}

bool Group::DoCopies(const Instruction& i, Lane* lane) {
  switch (i.kind) {
    case Kind::kCommitCopies:
      lane->commit_groups.push_back(std::exchange(lane->copies, {}));
      return true;
    case Kind::kWaitCopies:
      WaitForCopies(static_cast<size_t>(i.offset), lane);
      return true;
    case Kind::kWaitAllCopies:
      WaitForCopies(0, lane);
      Finish(std::exchange(lane->copies, {}), lane);
      return true;
    default:
      return BeginCopy(i, lane);
  }
}

bool Group::BeginCopy(const Instruction& i, Lane* lane) {
  const uint64_t* const s = lane->slots;
  const auto given = static_cast<uint32_t>(s[i.c]);
  if (given > i.bytes) {
    return Fail(absl::StatusCode::kInvalidArgument, i, *lane, fmt::format("copies {} bytes of {}", given, i.bytes));
  }
  const std::byte* const to = Reach(i, *lane, Space::kShared, s[i.to] + s[i.b], i.bytes, true);
  if (to == nullptr) return false;
  Copy copy{static_cast<uint64_t>(to - shared_.data()), s[i.a] + static_cast<uint64_t>(i.offset), i.bytes, given};
  if (given > 0) {
    if (copy.from % i.bytes != 0) {
      return Fail(absl::StatusCode::kDataLoss, i, *lane,
                  fmt::format("copies {} bytes from {:#x}, which is not aligned", i.bytes, copy.from));
    }
    if (ReachGlobal(i, *lane, copy.from, given, false) == nullptr) return false;
    if (existing_bytes_ < given) {
      return Fail(absl::StatusCode::kOutOfRange, i, *lane,
                  fmt::format("copies {} bytes from {:#x}, of which {} are outside of the launch's memory", given,
                              copy.from, given - existing_bytes_));
    }
  }
  for (uint64_t at = copy.to; at < copy.to + copy.bytes; ++at)
    touches_[at].copier = static_cast<uint16_t>(lane->number + 1);
  lane->copies.push_back(copy);
  return true;
}

void Group::Finish(std::span<const Copy> copies, Lane* lane) {
  for (const Copy& copy : copies) {
    std::byte* const to = shared_.data() + copy.to;
    std::memcpy(to, reinterpret_cast<const std::byte*>(copy.from), copy.given);
    std::memset(to + copy.given, 0, copy.bytes - copy.given);
    for (uint64_t at = copy.to; at < copy.to + copy.bytes; ++at) {
      touches_[at].copier = 0;
      touches_[at].written = barrier_;
      touches_[at].arrived = arrived_;
    }
    if (!unseen_.empty()) MarkWritten(copy.to, copy.bytes, lane);
  }
}

void Group::WaitForCopies(size_t pending, Lane* lane) {
  while (lane->commit_groups.size() > pending) {
    Finish(lane->commit_groups.front(), lane);
    lane->commit_groups.pop_front();
  }
}

void Group::MarkWritten(uint64_t offset, uint32_t bytes, Lane* lane) {
  std::fill_n(unseen_.begin() + static_cast<int64_t>(offset), bytes, static_cast<uint16_t>(lane->number + 1));
  lane->written.emplace_back(offset, bytes);
}

// The lane's own writes before the fence are visible to wgmma from the next barrier on.
void Group::FenceWrites(Lane* lane) {
  for (const auto& [offset, bytes] : lane->written) {
    for (uint64_t at = offset; at < offset + bytes && at < unseen_.size(); ++at) {
      if (unseen_[at] == lane->number + 1) unseen_[at] = kFenced;
    }
    fenced_.emplace_back(offset, bytes);
  }
  lane->written.clear();
}

// Whether all lanes wait at such a barrier; warps may be at those of different lines.
bool Group::AllAt(Kind barrier) const {
  const auto waits = [&](const Lane& lane) { return lane.waits && Next(lane).kind == barrier; };
  if (!std::ranges::all_of(lanes_, waits)) return false;
  for (size_t first = 0; first < lanes_.size(); first += kWarp) {
    if (!AllWait(std::span(lanes_).subspan(first, std::min<size_t>(kWarp, lanes_.size() - first)))) return false;
  }
  return true;
}

bool Group::WaitsForCluster() const { return AllAt(Kind::kClusterWait); }

bool Group::ClusterHasArrived() const {
  return std::ranges::all_of(cluster_, [&](const auto& group) { return group->arrived_ >= arrived_; });
}

// Lanes do not wait for each other to arrive. The group counts one arrival when all its lanes have come here.
bool Group::RunBarrier() {
  if (AllAt(Kind::kClusterArrive)) {
    Arrive();
    return error_.ok();
  }
  const bool all = AllAt(Kind::kBarrier) || (WaitsForCluster() && ClusterHasArrived());
  if (all) PassBarrier();
  return all;
}

void Group::Arrive() {
  if (arrived_ > waited_) {
    Fail(absl::StatusCode::kFailedPrecondition, Next(lanes_[0]), lanes_[0], "arrives again before it waited");
    return;
  }
  ++arrived_;
  if (Next(lanes_[0]).releases) released_ = arrived_;
  for (auto& [offset, object] : mbarriers_) object.made = object.made == 0 && object.fenced ? arrived_ : object.made;
  Release(lanes_);
}

void Group::PassBarrier() {
  for (const auto& [offset, bytes] : fenced_) {
    for (uint64_t at = offset; at < offset + bytes; ++at) {
      if (unseen_[at] == kFenced) unseen_[at] = 0;
    }
  }
  fenced_.clear();
  if (WaitsForCluster()) waited_ = arrived_;
  for (auto& [offset, object] : mbarriers_)
    object.made = std::max<uint32_t>(object.made, object.fenced && cluster_.size() == 1);
  ++barrier_;
  Release(lanes_);
}

}  // namespace hone::ptx

// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/group.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::ptx {
namespace {

constexpr uint64_t kStaticShared = 48 << 10;          // bytes that a kernel may have without a request of the launch
constexpr uint64_t kBranchesMax = uint64_t{1} << 28;  // of one lane, between two waits

}  // namespace

Group::Group(const Kernel& kernel, const Launch& launch)
    : kernel_(kernel),
      launch_(launch),
      slots_(size_t{launch.lanes} * kernel.slots),
      shared_(kernel.shared_bytes + launch.shared_bytes),
      local_(launch.lanes * kernel.local_bytes),
      products_((launch.lanes + kWarps - 1) / kWarps),
      touches_(shared_.size()),
      unseen_(kernel.has_products ? shared_.size() : 0),
      uses_(launch.memory.size()) {
  if (kernel.shared_bytes > kStaticShared) {
    error_ = absl::InvalidArgumentError(fmt::format("kernel '{}' has {} bytes of shared memory without asking for them",
                                                    kernel.name, kernel.shared_bytes));
  }
}

void Group::Reset(uint32_t number) {
  number_ = number;
  arrived_ = waited_ = released_ = 0;
  std::ranges::fill(slots_, ~uint64_t{0});
  std::ranges::fill(shared_, std::byte{kUnset});
  std::ranges::fill(local_, std::byte{kUnset});
  std::ranges::fill(touches_, SharedUse{});
  std::ranges::fill(unseen_, 0);
  fenced_.clear();
  mbarriers_.clear();
  lanes_.assign(launch_.lanes, {});
  products_.assign(products_.size(), {});
  for (uint32_t n = 0; n < launch_.lanes; ++n) {
    Lane& lane = lanes_[n];
    lane.number = n;
    lane.slots = &slots_[size_t{n} * kernel_.slots];
    lane.local = local_.data() + n * kernel_.local_bytes;
    const uint32_t special[] = {n, launch_.lanes, number, launch_.groups, n % kWarp, n / kWarp, 0};
    static_assert(std::size(special) == kSpecialSlots);
    std::ranges::copy(special, lane.slots);
    std::ranges::copy(launch_.arguments, lane.slots + kSpecialSlots);
    for (const auto& [slot, value] : kernel_.constants) lane.slots[slot] = value;
  }
}

absl::Status Group::Begin(uint32_t number, std::span<const std::unique_ptr<Group>> cluster) {
  HONE_RETURN_IF_ERROR(error_);
  Reset(number);
  cluster_ = cluster;
  ascending_ = number % 2 == 0;
  return absl::OkStatus();
}

// Lanes run in ascending order until they wait, and then in descending order. A lane that relies on another without a
// wait fails in one of the two.
absl::StatusOr<bool> Group::Advance() {
  bool advanced = false;
  for (size_t n = 0; n < lanes_.size(); ++n) {
    Lane& lane = lanes_[ascending_ ? n : lanes_.size() - 1 - n];
    if (lane.waits || lane.ended) continue;
    advanced = true;
    if (!RunLane(&lane)) return error_;
  }
  if (advanced) ascending_ = !ascending_;
  if (Ended()) return advanced;
  advanced |= RunTogether();
  HONE_RETURN_IF_ERROR(error_);
  return advanced;
}

bool Group::Ended() const { return std::ranges::all_of(lanes_, &Lane::ended); }

bool Group::RunLane(Lane* lane) {
  uint64_t* const s = lane->slots;
  const Instruction* const code = kernel_.code.data();
  const std::vector<bool>& used = products_[lane->number / kWarps].used;
  const bool watches = !used.empty();
  uint64_t branches = 0;
  for (const Instruction* i = code + lane->pc;; ++i) {
    if (i->guarded && ((s[i->guard] & 1) != 0) == i->guard_negated) continue;
    if (watches && i->kind < Kind::kBarrier && Touches(*i, used)) {
      return Fail(absl::StatusCode::kFailedPrecondition, *i, *lane, "uses a register of wgmma that was not waited for");
    }
    switch (i->kind) {
      case Kind::kCompute:
        i->compute(*i, s);
        break;
      case Kind::kLoad:
        if (!Load(*i, lane)) return false;
        break;
      case Kind::kStore:
        if (!Store(*i, lane)) return false;
        break;
      case Kind::kPack:
      case Kind::kUnpack:
        Repack(*i, s);
        break;
      case Kind::kBranch:
        if (++branches > kBranchesMax) {
          return Fail(absl::StatusCode::kDeadlineExceeded, *i, *lane, "has branched too often to come to an end");
        }
        i = code + i->target - 1;
        break;
      case Kind::kExit:
        return lane->ended = true;
      case Kind::kTrap:
        return Fail(absl::StatusCode::kAborted, *i, *lane, "is a trap");
      case Kind::kCopy:
      case Kind::kCommitCopies:
      case Kind::kWaitCopies:
      case Kind::kWaitAllCopies:
        if (!DoCopies(*i, lane)) return false;
        break;
      case Kind::kWaitForGrids:
        lane->waited_for_grids = true;
        break;
      case Kind::kFenceProxy:
        FenceWrites(lane);
        [[fallthrough]];
      case Kind::kNothing:
        break;
      default:
        if (i->kind < Kind::kBarrier) {
          if (!UseMbarrier(*i, *lane)) return false;
          break;
        }
        lane->pc = static_cast<uint32_t>(i - code);
        return lane->waits = true;
    }
  }
}

// Parts of a register, the lowest first.
void Group::Repack(const Instruction& i, uint64_t* s) const {
  const int bits = 8 * i.bytes;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t whole = i.kind == Kind::kUnpack ? s[i.a] : 0;
  for (uint32_t n = 0; n < i.count; ++n) {
    uint64_t& part = s[kernel_.lists[i.list + n]];
    if (i.kind == Kind::kUnpack) {
      part = whole >> (n * bits) & mask;
    } else {
      whole |= (part & mask) << (n * bits);
    }
  }
  if (i.kind == Kind::kPack) s[i.to] = whole;
}

bool Group::Touches(const Instruction& i, const std::vector<bool>& used) const {
  bool touches = false;
  for (const uint32_t slot : {i.to, i.also_to, i.a, i.b, i.c, i.guard}) touches |= used[slot];
  for (uint32_t n = 0; n < i.count; ++n) touches |= used[kernel_.lists[i.list + n]];
  return touches;
}

std::string Group::Place(const Instruction& i) const {
  const auto& [line, text] = kernel_.source[static_cast<size_t>(&i - kernel_.code.data())];
  return fmt::format("line {}: {}", line, text);
}

bool Group::Fail(absl::StatusCode code, const Instruction& i, const Lane& lane, std::string_view what) {
  error_ = absl::Status(
      code, fmt::format("kernel '{}', {}: group {}, lane {} {}", kernel_.name, Place(i), number_, lane.number, what));
  return false;
}

absl::Status Group::DeadlockError() const {
  const auto waits = [](const Lane& lane) { return lane.waits; };
  const Lane& waiting = *std::ranges::find_if(lanes_, waits);
  const Kind kind = Next(waiting).kind;
  if (kind == Kind::kTryWait) {
    return absl::FailedPreconditionError(
        fmt::format("kernel '{}', {}: group {}, lane {} waits for what does not arrive", kernel_.name,
                    Place(Next(waiting)), number_, waiting.number));
  }
  const bool all = kind >= Kind::kBarrier && kind <= Kind::kClusterWait;
  const uint32_t width = all ? launch_.lanes : kind < Kind::kProductFence ? kWarp : kWarps;
  const uint32_t first = waiting.number / width * width;
  std::string others = fmt::format("there are {} lanes", launch_.lanes);
  for (uint32_t n = first; n < std::min(first + width, launch_.lanes); ++n) {
    const Lane& other = lanes_[n];
    if (!other.ended && other.pc == waiting.pc) continue;
    others = fmt::format("lane {} {}", n, other.ended ? "has ended" : "is at " + Place(Next(other)));
    break;
  }
  return absl::FailedPreconditionError(fmt::format("kernel '{}', {}: group {}, lane {} waits for others, but {}",
                                                   kernel_.name, Place(Next(waiting)), number_, waiting.number,
                                                   others));
}

void Group::TakeUses(const Group& other) {
  for (size_t n = 0; n < uses_.size(); ++n) {
    if (other.uses_[n].only_read != nullptr) uses_[n].only_read = other.uses_[n].only_read;
    if (other.uses_[n].written != nullptr) uses_[n].written = other.uses_[n].written;
  }
}

absl::Status Group::CheckReadOnly() const {
  if (!launch_.memory_is_buffers) return absl::OkStatus();
  for (const Use& use : uses_) {
    if (use.only_read == nullptr || use.written == nullptr) continue;
    return absl::FailedPreconditionError(fmt::format("kernel '{}', {}: reads what is written by {}", kernel_.name,
                                                     Place(*use.only_read), Place(*use.written)));
  }
  return absl::OkStatus();
}

}  // namespace hone::ptx

// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/guarded_memory.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/kernel_abi.h"
#include "device_agent/visit/memory_file.h"

namespace hone::agent {
namespace {

constexpr int64_t kPageBytesMin = 4096;
constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kGuard = HONE_REACH_BYTES;  // catches strides, costs address space only
constexpr int64_t kCanary = 64;               // least on each side

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::optional<int64_t> FindOverwrittenByte(const GuardZones& zones) {
  const auto broken = [](char c) { return c != kGuardPattern; };
  if (const auto at = std::find_if(zones.back.begin(), zones.back.end(), broken); at != zones.back.end())
    return at - zones.back.begin();
  if (const auto at = std::find_if(zones.front.rbegin(), zones.front.rend(), broken); at != zones.front.rend())
    return -1 - (at - zones.front.rbegin());
  return std::nullopt;
}

RegionTable::RegionTable(size_t capacity) { regions_.reserve(capacity); }

bool RegionTable::Add(const Region& region) {
  if (regions_.size() == regions_.capacity()) return false;
  regions_.push_back(region);
  return true;
}

void RegionTable::Remove(const Region& region) {
  std::erase_if(regions_, [&](const Region& other) { return other.begin == region.begin; });
}

std::optional<RegionTable::Hit> RegionTable::Locate(const void* address) const {
  const char* p = static_cast<const char*>(address);
  for (const Region& region : regions_) {
    if (p < region.begin || p >= region.end) continue;
    if (p < region.data) return Hit{&region, Place::kBefore, region.data - p};
    const char* end = region.data + region.bytes;
    if (p >= end) return Hit{&region, Place::kAfter, p - end};
    return Hit{&region, Place::kInside, p - region.data};
  }
  return std::nullopt;
}

absl::StatusOr<GuardedBuffer> GuardedBuffer::Create(RegionTable& table, const std::string& name, int64_t bytes,
                                                    int64_t page) {
  const int64_t front = kCanary * (1 + (table.NextColour() * 7) % 31);
  const int64_t body = RoundUp(front + bytes + kCanary, page);
  // As in the runtime, large buffers are aligned for huge pages.
  const int64_t alignment = bytes >= kHugePage ? kHugePage : page;
  const int64_t total = body + 2 * kGuard + alignment;
  void* mapping = IsAddressable(total)
                      ? mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                      : MAP_FAILED;
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(fmt::format("no memory for '{}' ({} bytes)", name, bytes));
  }
  char* begin = static_cast<char*>(mapping);
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin));
  char* body_begin = reinterpret_cast<char*>(static_cast<uintptr_t>(RoundUp(address + kGuard, alignment)));
  if (mprotect(body_begin, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, total);
    return absl::ResourceExhaustedError(fmt::format("no memory for '{}' ({} bytes)", name, bytes));
  }
  if (alignment == kHugePage) madvise(body_begin, body, MADV_HUGEPAGE);
  Region region;
  region.begin = begin;
  region.end = begin + total;
  region.body = body_begin;
  region.body_end = body_begin + body;
  region.data = body_begin + front;
  region.bytes = bytes;
  name.copy(region.name, sizeof(region.name) - 1);
  if (!table.Add(region)) {
    munmap(mapping, total);
    return absl::ResourceExhaustedError(fmt::format("there is no room for buffer '{}': too many buffers", name));
  }
  GuardedBuffer buffer(&table, region);
  memset(buffer.CanaryBegin(), kGuardPattern, front);
  memset(buffer.data() + bytes, kGuardPattern, buffer.CanaryEnd() - (buffer.data() + bytes));
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)), region_(other.region_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(region_, other.region_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (table_ == nullptr) return;
  table_->Remove(region_);
  munmap(const_cast<char*>(region_.begin), region_.end - region_.begin);
}

char* GuardedBuffer::CanaryBegin() const { return const_cast<char*>(region_.body); }
char* GuardedBuffer::CanaryEnd() const { return const_cast<char*>(region_.body_end); }

absl::Status GuardedBuffer::Protect() {
  if (mprotect(CanaryBegin(), CanaryEnd() - CanaryBegin(), PROT_READ) == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format("cannot protect '{}'", region_.name));
}

absl::Status GuardedBuffer::OpenGuards() {
  char* const front = CanaryBegin() - kGuard;
  char* const back = CanaryEnd();
  if (mprotect(front, kGuard, PROT_READ) != 0 || mprotect(back, kGuard, PROT_READ) != 0) {
    return absl::ResourceExhaustedError(fmt::format("cannot open the guards of '{}'", region_.name));
  }
  // Reading a page once makes it present.
  for (int64_t at = 0; at < kGuard; at += kPageBytesMin) {
    static_cast<void>(*static_cast<volatile const char*>(front + at));
    static_cast<void>(*static_cast<volatile const char*>(back + at));
  }
  return absl::OkStatus();
}

GuardZones GuardedBuffer::guards() const {
  const char* const end = region_.data + region_.bytes;
  return {{region_.body, region_.data}, {end, region_.body_end}};
}

static_assert(kCanary % HONE_BUFFER_ALIGNMENT == 0);
static_assert(kGuard % kPageBytesMax == 0 && kHugePage % kPageBytesMax == 0);

}  // namespace hone::agent

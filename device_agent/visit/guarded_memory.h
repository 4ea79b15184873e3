// SPDX-License-Identifier: Apache-2.0
// Buffers for untrusted kernels. Each lies between two canary zones, and these between two guard areas without access.
//
// A write just beside the buffer changes a canary, which FindOverwrittenByte finds. A write further out faults on a
// guard page, and Locate names the buffer. The memory is anonymous and private, as in the runtime, so that timings
// agree. Buffers start at different offsets within their pages; otherwise they would compete for the same cache sets.
//
// Timed calls need guard areas that can be read. A vector load whose mask excludes all elements, as at the edge of an
// image, does not fault on an absent page, but takes an x86 core some 230 ns instead of less than one.
#ifndef HONE_DEVICE_AGENT_VISIT_GUARDED_MEMORY_H_
#define HONE_DEVICE_AGENT_VISIT_GUARDED_MEMORY_H_

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

inline constexpr char kGuardPattern = '\xc5';       // the byte in guard zones; neither 0 nor a likely value of any type
inline constexpr int64_t kPageBytesMax = 64 << 10;  // the largest page size of any system; a Raspberry Pi 5 has 16 KiB

// The bytes before a buffer and behind it that a kernel must leave alone.
struct GuardZones {
  std::span<const char> front, back;
};
// The distance of a changed byte from the buffer: at least 0 for the first one behind its end, else negative for the
// nearest one before it. nullopt: no byte was changed.
std::optional<int64_t> FindOverwrittenByte(const GuardZones& zones);

// Where an address lies relative to a buffer.
enum class Place : int32_t { kBefore = 1, kInside = 2, kAfter = 3 };

struct Region {
  const char* begin = nullptr;  // of the mapping, guards included
  const char* end = nullptr;
  const char* body = nullptr;  // of the pages that may be touched
  const char* body_end = nullptr;
  const char* data = nullptr;
  int64_t bytes = 0;
  char name[48] = {};  // for messages; cut if longer
};

// All guarded buffers of a process. Signal handlers may call Locate, which neither allocates nor locks. It must not run
// while another thread adds or removes a region.
class RegionTable {
 public:
  struct Hit {
    const Region* region;
    Place place;
    int64_t distance;  // bytes beyond the nearer end of the buffer; offset for kInside
  };
  explicit RegionTable(size_t capacity = 4096);  // capacity, allocated at once
  bool Add(const Region& region);                // false: table full
  void Remove(const Region& region);
  std::optional<Hit> Locate(const void* address) const;
  // Grows with every buffer: staggers where they start.
  uint32_t NextColour() { return colour_++; }

 private:
  uint32_t colour_ = 0;
  std::vector<Region> regions_;  // never grows beyond what the constructor reserved
};

class GuardedBuffer {
 public:
  // `bytes` of memory aligned to HONE_BUFFER_ALIGNMENT, zero. `table` must outlive the buffer. page: bytes of one, no
  // fewer than the system's and no more than kPageBytesMax. kResourceExhausted: the memory limit.
  static absl::StatusOr<GuardedBuffer> Create(RegionTable& table, const std::string& name, int64_t bytes,
                                              int64_t page = sysconf(_SC_PAGESIZE));
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  char* data() const { return const_cast<char*>(region_.data); }
  int64_t bytes() const { return region_.bytes; }

  // Makes the buffer read-only: a kernel that writes it faults.
  absl::Status Protect();

  // Makes the HONE_REACH_BYTES on each side memory that can be read.
  absl::Status OpenGuards();

  GuardZones guards() const;
  const Region& region() const { return region_; }

 private:
  GuardedBuffer(RegionTable* table, const Region& region) : table_(table), region_(region) {}
  char* CanaryBegin() const;
  char* CanaryEnd() const;

  RegionTable* table_ = nullptr;
  Region region_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_GUARDED_MEMORY_H_

#include "device_agent/evidence.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/kernel_abi.h"
#include "device_agent/elements.h"

namespace hone::agent {
namespace {

constexpr size_t kMostZone = 4096 + 256;  // bytes on one side of a buffer
constexpr size_t kLeastZone = 16;
constexpr size_t kHeader = HONE_BUFFER_ALIGNMENT;

// Buffers around which a kernel of that interface must have zones: those that it may write. Its workspaces may be parts
// of one.
size_t Written(const KernelInterface& interface) {
  return interface.Of(BufferRole::kOutput).size() + interface.Of(BufferRole::kPacked).size() +
         std::min<size_t>(interface.Of(BufferRole::kWorkspace).size(), 1);
}

}  // namespace

struct Evidence::Zones {
  uint32_t front, back;
  char name[56];
  char bytes[2 * kMostZone];  // those in front end in the middle, where the others begin
};

Evidence::Evidence(const VisitBatch& batch, char* memory, int64_t bytes, size_t most)
    : batch_(&batch), layout_(LayOut(batch)), memory_(memory), bytes_(bytes), most_(most) {}

absl::StatusOr<Evidence> Evidence::Create(const VisitBatch& batch) {
  size_t own = batch.reference.interface.buffers.size();
  for (const VisitCandidate& candidate : batch.candidates) {
    own = std::max(own, candidate.kernel.interface.buffers.size());
  }
  const size_t most = batch.buffers.size() + own + 1;
  const auto bytes = static_cast<int64_t>(kHeader + most * sizeof(Zones)) + LayOut(batch).output_bytes;
  void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(fmt::format("no memory for {} bytes of outputs", bytes));
  }
  return Evidence(batch, static_cast<char*>(memory), bytes, most);
}

Evidence::Evidence(Evidence&& other) noexcept
    : batch_(other.batch_),
      layout_(std::move(other.layout_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      most_(other.most_) {}

Evidence::~Evidence() {
  if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(bytes_));
}

uint32_t& Evidence::count() const { return *reinterpret_cast<uint32_t*>(memory_ + layout_.output_bytes); }
Evidence::Zones* Evidence::zones() const { return reinterpret_cast<Zones*>(memory_ + layout_.output_bytes + kHeader); }

void Evidence::Begin() { count() = 0; }

void Evidence::ShowOutput(size_t buffer, const char* bytes) {
  memcpy(memory_ + layout_.offsets[buffer], bytes, static_cast<size_t>(batch_->buffers[buffer].bytes));
}

void Evidence::ShowGuards(const std::string& name, const GuardZones& given) {
  if (count() >= most_) return;
  Zones& shown = zones()[count()++];
  const size_t front = std::min(given.front.size(), kMostZone), back = std::min(given.back.size(), kMostZone);
  shown.front = static_cast<uint32_t>(front);
  shown.back = static_cast<uint32_t>(back);
  memset(shown.name, 0, sizeof(shown.name));
  name.copy(shown.name, sizeof(shown.name) - 1);
  memcpy(shown.bytes + kMostZone - front, given.front.data() + given.front.size() - front, front);
  memcpy(shown.bytes + kMostZone, given.back.data(), back);
}

std::optional<VisitFailure> Evidence::JudgeOutputs(const char* expected, double& max_error) {
  std::optional<VisitFailure> failure;
  for (size_t i = 0; i < batch_->buffers.size(); ++i) {
    const VisitBuffer& buffer = batch_->buffers[i];
    if (buffer.role != BufferRole::kOutput || failure.has_value()) continue;
    const Comparison comparison =
        Compare(buffer, batch_->tolerance, memory_ + layout_.offsets[i], expected + layout_.offsets[i]);
    if (!comparison.equal) failure = {FailureKind::kWrongOutput, comparison.text};
    max_error = std::max(max_error, comparison.max_error);
  }
  Scrub();
  return failure;
}

void Evidence::TakeOutputs(char* to) {
  memcpy(to, memory_, static_cast<size_t>(layout_.output_bytes));
  Scrub();
}

// Else a kernel could show what another has computed.
void Evidence::Scrub() { memset(memory_, 0xff, static_cast<size_t>(layout_.output_bytes)); }

std::optional<VisitFailure> Evidence::JudgeGuards(const KernelInterface& interface) const {
  const uint32_t shown = count();
  const VisitFailure tampered{FailureKind::kOutOfBoundsWrite, "tampered with the guard zones around its buffers"};
  if (shown > most_ || shown < Written(interface)) return tampered;
  for (uint32_t i = 0; i < shown; ++i) {
    const Zones& one = zones()[i];
    const size_t front = one.front, back = one.back;
    if (front < kLeastZone || front > kMostZone || back < kLeastZone || back > kMostZone) return tampered;
    const GuardZones zones{{one.bytes + kMostZone - front, front}, {one.bytes + kMostZone, back}};
    if (const auto distance = BrokenGuard(zones)) {
      return WroteBeside(std::string(one.name, strnlen(one.name, sizeof(one.name))), *distance);
    }
  }
  return std::nullopt;
}

VisitFailure WroteBeside(const std::string& name, int64_t distance) {
  return {FailureKind::kOutOfBoundsWrite, distance < 0
                                              ? fmt::format("wrote {} bytes before {}", -distance, name)
                                              : fmt::format("wrote {} bytes past the end of {}", distance + 1, name)};
}

}  // namespace hone::agent

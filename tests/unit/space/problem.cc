// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "base/status.h"
#include "compiler/ir/elements.h"

namespace hone::tests {
namespace {

constexpr size_t kCanaryBytes = 256;
constexpr unsigned char kCanary = 0xFF;  // NaN in floats of every type

void FillParam(const ir::Param& param, std::span<std::byte> bytes, Random& random) {
  const ir::DType dtype = param.buffer->dtype;
  const bool no_range = ir::IsInt(dtype) && param.low == -1 && param.high == 1;
  const double low = no_range ? (ir::IsSignedInt(dtype) ? -100 : 0) : param.low;
  ir::FillRandom(dtype, low, no_range ? 100 : param.high, random, bytes);
}

// The number of floats of `size` bytes that lie between a and b, counting one end.
uint64_t FloatsApart(const std::byte* a, const std::byte* b, size_t size) {
  uint64_t bits[2] = {};
  std::memcpy(&bits[0], a, size);
  std::memcpy(&bits[1], b, size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const uint64_t x = bits[0] & ~sign, y = bits[1] & ~sign;
  if ((bits[0] & sign) != (bits[1] & sign)) return x + y;
  return std::max(x, y) - std::min(x, y);
}

}  // namespace

Guarded::Guarded(int64_t bytes, int64_t room)
    : bytes_(static_cast<size_t>(bytes)), room_(static_cast<size_t>(room)), memory_(nullptr, std::free) {
  const size_t total = (room_ + 2 * kCanaryBytes + 63) / 64 * 64;
  memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, total)));
  std::memset(memory_.get(), kCanary, total);
}

std::byte* Guarded::data() { return reinterpret_cast<std::byte*>(memory_.get() + kCanaryBytes); }

std::span<std::byte> Guarded::with_canary() { return {data(), room_ + kCanaryBytes}; }

bool Guarded::Intact() const {
  const auto is_canary = [](unsigned char byte) { return byte == kCanary; };
  const unsigned char* const first = memory_.get();
  const unsigned char* const behind = first + kCanaryBytes + bytes_;
  return std::all_of(first, first + kCanaryBytes, is_canary) &&
         std::all_of(behind, first + kCanaryBytes + room_ + kCanaryBytes, is_canary);
}

std::vector<Guarded> Allocate(const std::vector<int64_t>& bytes) {
  std::vector<Guarded> buffers;
  for (const int64_t b : bytes) buffers.emplace_back(b);
  return buffers;
}

std::vector<Guarded> Allocate(const std::vector<ir::Buffer>& buffers, const std::vector<ir::Buffer>& largest) {
  std::vector<Guarded> memory;
  for (size_t i = 0; i < buffers.size(); ++i) {
    memory.emplace_back(ir::NumBytes(*buffers[i]), ir::NumBytes(*largest[i]));
  }
  return memory;
}

std::vector<int64_t> BytesOf(const std::vector<ir::Buffer>& buffers) {
  std::vector<int64_t> bytes;
  for (const ir::Buffer& buffer : buffers) bytes.push_back(ir::NumBytes(*buffer));
  return bytes;
}

std::vector<int64_t> InOrder(const ir::Workload& workload, const SizeMap& sizes) {
  std::vector<int64_t> values;
  for (const ir::OpenSize& size : workload.sizes) values.push_back(sizes.at(size.name));
  return values;
}

absl::StatusOr<Problem> MakeProblem(const ir::Workload& workload, const SizeMap& sizes, Room room) {
  Problem problem{.workload = workload.sizes.empty() ? workload : ir::WithSizes(workload, sizes)};
  const ir::Workload& largest = room == Room::kOfRun ? problem.workload : workload;
  const auto buffers = [](const ir::Workload& w) {
    std::vector<ir::Buffer> result;
    for (const ir::Param& param : w.params) result.push_back(param.buffer);
    return result;
  };
  Random random(7);
  std::vector<std::span<const std::byte>> spans;
  problem.params = Allocate(buffers(problem.workload), buffers(largest));
  for (size_t i = 0; i < problem.params.size(); ++i) {
    FillParam(problem.workload.params[i], problem.params[i].span(), random);
    spans.emplace_back(problem.params[i].span());
  }
  problem.outputs = Allocate(problem.workload.outputs, largest.outputs);
  HONE_ASSIGN_OR_RETURN(problem.expected, ir::Interpret(problem.workload, spans));
  return problem;
}

absl::Status Compare(const ir::BufferNode& buffer, std::span<const std::byte> expected,
                     std::span<const std::byte> actual, Tolerance tolerance) {
  const ir::DType dtype = buffer.dtype;
  const auto size = static_cast<size_t>(ir::SizeOf(dtype));
  if (std::equal(expected.begin(), expected.end(), actual.begin(), actual.end())) return absl::OkStatus();
  double largest = 0;
  for (size_t at = 0; at < expected.size(); at += size) {
    const double e = ir::ElementAsDouble(dtype, &expected[at]);
    if (std::isfinite(e)) largest = std::max(largest, std::fabs(e));
  }
  const double allowed = tolerance.relative * std::max(largest, tolerance.least);
  for (size_t at = 0; at < expected.size(); at += size) {
    if (std::memcmp(&expected[at], &actual[at], size) == 0) continue;
    const double e = ir::ElementAsDouble(dtype, &expected[at]), a = ir::ElementAsDouble(dtype, &actual[at]);
    const bool near = tolerance.apart < 0
                          ? std::fabs(e - a) <= allowed
                          : FloatsApart(&expected[at], &actual[at], size) <= static_cast<uint64_t>(tolerance.apart);
    if (ir::IsFloat(dtype) && (e == a || (std::isnan(e) && std::isnan(a)) || (near && !std::isnan(e - a)))) continue;
    return absl::DataLossError(fmt::format("{}[{}] is {}, should be {}", buffer.name, at / size, a, e));
  }
  return absl::OkStatus();
}

absl::Status CompareAll(const Problem& problem, const std::vector<Guarded>& packed, Tolerance tolerance) {
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(
        Compare(*problem.workload.outputs[i], problem.expected[i], problem.outputs[i].span(), tolerance));
  }
  for (const auto* group : {&problem.params, &packed, &problem.outputs}) {
    for (const Guarded& buffer : *group) {
      if (!buffer.Intact()) return absl::DataLossError("wrote outside of a buffer");
    }
  }
  return absl::OkStatus();
}

absl::Status AtSizes(const absl::Status& status, const SizeMap& sizes) {
  if (status.ok() || sizes.empty()) return status;
  std::string where;
  for (const auto& [name, value] : sizes) where += fmt::format("{}{} = {}", where.empty() ? "" : ", ", name, value);
  return Annotate(status, "at " + where);
}

}  // namespace hone::tests

// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/kernel_sizes.h"

#include "base/kernel_interface.h"

namespace hone::runtime {

KernelSizes::KernelSizes(const ProgramView& program, uint32_t home) : program_(program) {
  constexpr size_t kAlignment = kSliceAlignment / sizeof(int64_t);
  size_t end = 0;
  for (const package::CallEntry& call : program.calls) {
    const std::span<const uint32_t> numbers = NumbersOf(call);
    if (program.Home(call) != home || numbers.empty()) continue;
    const bool is_new = places_.try_emplace({numbers.begin(), numbers.end()}, end).second;
    if (is_new) end += (numbers.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  contents_.assign(end, 0);
}

std::span<const uint32_t> KernelSizes::NumbersOf(const package::CallEntry& call) const {
  const KernelInterface& kernel = program_.Kernel(call);
  const std::vector<uint32_t> buffers = kernel.Of(BufferRole::kSizes);
  if (buffers.empty()) return {};
  return program_.size_arguments.subspan(program_.Arguments(call)[buffers[0]], kernel.size_count());
}

uint64_t KernelSizes::OffsetOf(const package::CallEntry& call) const {
  const std::span<const uint32_t> numbers = NumbersOf(call);
  return places_.at({numbers.begin(), numbers.end()}) * sizeof(int64_t);
}

void KernelSizes::Update(const SizeValues& values) {
  version_ = values.version();
  for (const auto& [numbers, place] : places_) {
    for (size_t i = 0; i < numbers.size(); ++i) contents_[place + i] = values.Value(numbers[i]);
  }
}

}  // namespace hone::runtime

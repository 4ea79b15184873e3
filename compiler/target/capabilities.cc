#include "compiler/target/capabilities.h"

#include <algorithm>
#include <initializer_list>

namespace hone::target {
namespace {

bool HasAll(const FeatureSet& features, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view f) { return features.contains(f); });
}

void FillVectors(const Microarchitecture& row, const FeatureSet& features, Target* target) {
  target->vector_bits = 128;
  target->vector_registers = 32;
  if (row.family.arch == Arch::kX86_64) {
    const bool wide = HasAll(features, {"avx512f", "avx512vl", "avx512bw", "avx512dq"});
    target->vector_bits = wide ? 512 : 256;
    target->vector_registers = wide ? 32 : 16;
  }
  target->core = row.core;
  if (target->vector_bits <= row.unit_bits) return;
  // Wide vectors go through narrower units in parts. Loads suffer a little less than arithmetic.
  const double part = static_cast<double>(row.unit_bits) / target->vector_bits;
  target->core.multiply_adds *= part;
  target->core.loads *= 1.2 * part;
}

}  // namespace

Target CpuTarget(const Microarchitecture& row, const FeatureSet& features) {
  Target target;
  target.arch = row.family.arch;
  target.cpu = row.name;
  target.features = Difference(features, FeaturesOf(row));
  target.memory.l1_bytes = row.caches.l1 << 10;
  target.memory.l2_bytes = row.caches.l2 << 10;
  target.memory.l3_bytes = row.caches.l3 << 10;
  FillVectors(row, features, &target);
  return target;
}

Target OpenClTarget() {
  Target target;
  target.kind = Kind::kOpenCl;
  target.hierarchy = {.units = 1, .max_lanes = 256, .lane_width = 8};
  target.memory.registers_bytes = 1 << 10;
  target.memory.local_bytes = target.memory.registers_bytes;
  target.memory.shared_bytes = 32 << 10;
  target.memory.shared_gain = 4;
  target.memory.l3_bytes = 0;
  target.vector_bits = 128;
  target.vector_registers = 64;
  return target;
}

}  // namespace hone::target

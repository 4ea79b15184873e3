// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/plausible.h"

#include <algorithm>
#include <string>

namespace hone::agent {
namespace {

// How many times fewer operations a kernel may need than its workload counts. Fast algorithms save up to three quarters
// of a convolution; the rest allows for a peak that was measured on a busy device.
constexpr double kOperationsDivisor = 8;
constexpr double kNarrowTypeSpeedup =
    16;  // speed of tensor instructions on TF32 or 8 bits, relative to f32 multiply-adds
// A core stores at most about a byte for every operation of its peak.
constexpr double kBytesPerOperation = 8;

}  // namespace

double CallSecondsMin(const v1::Batch& batch, double peak_gflops) {
  if (!(peak_gflops > 0)) return 0;
  const double peak = peak_gflops * 1e9;
  double output_bytes = 0;
  // The text of compiler/target is searched, not parsed. Parsing may load a driver, which would not survive forks.
  bool narrow = (batch.target() + " ").find(" -tf32 ") != std::string::npos;
  for (const v1::Buffer& buffer : batch.buffers()) {
    // Buffers have the largest sizes, of which a call with open sizes may write a small part.
    const bool counts = buffer.role() == v1::Buffer::ROLE_OUTPUT && batch.sizes().empty();
    if (counts) output_bytes += static_cast<double>(buffer.bytes());
    narrow |= buffer.dtype() != v1::DTYPE_F32 && buffer.dtype() != v1::DTYPE_F64;
  }
  const double computing = batch.flops() / (peak * kOperationsDivisor * (narrow ? kNarrowTypeSpeedup : 1));
  return std::max(computing, output_bytes / (peak * kBytesPerOperation));
}

void MeasuredPeak::Add(double gflops) {
  double known = gflops_;
  while (gflops > known && !gflops_.compare_exchange_weak(known, gflops)) {
  }
}

}  // namespace hone::agent

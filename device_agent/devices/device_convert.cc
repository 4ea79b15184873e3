// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/device_convert.h"

namespace hone::agent {

namespace {

// What may change while the hardware stays.
template <typename Message>  // v1::DeviceFingerprint or v1::RunEnvironment
void SetEnvironment(const DeviceFingerprint& fingerprint, Message& message) {
  message.set_kernel(fingerprint.kernel);
  message.set_governor(fingerprint.governor);
  message.set_boost(fingerprint.boost);
  message.set_smt(fingerprint.smt);
  message.set_huge_pages(fingerprint.huge_pages);
  message.set_driver(fingerprint.driver);
}

}  // namespace

v1::DeviceFingerprint ToProto(const DeviceFingerprint& fingerprint) {
  v1::DeviceFingerprint message;
  message.set_architecture(fingerprint.architecture);
  message.set_cpu_model(fingerprint.cpu_model);
  for (const std::string& feature : fingerprint.cpu_features) message.add_cpu_features(feature);
  message.set_physical_cores(fingerprint.physical_cores);
  message.set_logical_cpus(fingerprint.logical_cpus);
  for (const CacheLevel& cache : fingerprint.caches) {
    v1::CacheLevel& added = *message.add_caches();
    added.set_level(cache.level);
    added.set_type(cache.type);
    added.set_bytes(cache.bytes);
    added.set_line_bytes(cache.line_bytes);
    added.set_shared_by(cache.shared_by);
  }
  message.set_memory_bytes(fingerprint.memory_bytes);
  SetEnvironment(fingerprint, message);
  message.set_text(fingerprint.text);
  message.set_digest(fingerprint.digest);
  return message;
}

v1::RunEnvironment ToRunEnvironment(const DeviceFingerprint& fingerprint) {
  v1::RunEnvironment message;
  SetEnvironment(fingerprint, message);
  return message;
}

v1::DeviceRoofline ToProto(const Roofline& roofline) {
  v1::DeviceRoofline message;
  message.set_flops_per_second(roofline.flops_per_second);
  for (const Roofline::Level& level : roofline.levels) {
    v1::DeviceRoofline::Level& added = *message.add_levels();
    if (level.bytes != UINT64_MAX) added.set_bytes(static_cast<int64_t>(level.bytes));
    added.set_bytes_per_second(level.bytes_per_second);
  }
  return message;
}

v1::SelfTest ToProto(const SelfTestResult& test) {
  v1::SelfTest message;
  message.set_passed(test.passed);
  message.set_reason(test.reason);
  message.set_reference_seconds(test.reference_seconds);
  message.set_noise(test.noise);
  if (test.temperature_c.has_value()) message.set_temperature_c(*test.temperature_c);
  message.set_peak_gflops(test.roofline.flops_per_second * 1e-9);
  if (!test.roofline.levels.empty()) {
    message.set_bandwidth_gbps(test.roofline.levels.back().bytes_per_second * 1e-9);
  }
  return message;
}

v1::SandboxLayer ToProto(const SandboxLayer& layer) {
  v1::SandboxLayer message;
  message.set_name(std::string(Name(layer.layer)));
  message.set_holds(layer.holds);
  message.set_detail(layer.detail);
  return message;
}

v1::Sandbox ToProto(const std::vector<SandboxLayer>& layers) {
  v1::Sandbox message;
  switch (LevelOf(layers)) {
    case SandboxLevel::kNone:
      message.set_level(v1::SANDBOX_LEVEL_NONE);
      break;
    case SandboxLevel::kFilter:
      message.set_level(v1::SANDBOX_LEVEL_FILTER);
      break;
    case SandboxLevel::kWall:
      message.set_level(v1::SANDBOX_LEVEL_WALL);
      break;
  }
  for (const SandboxLayer& layer : layers) *message.add_layers() = ToProto(layer);
  return message;
}

std::vector<SandboxLayer> FromProto(const v1::Sandbox& sandbox) {
  std::vector<SandboxLayer> layers;
  for (const v1::SandboxLayer& layer : sandbox.layers()) {
    for (const Layer known : kAllLayers) {
      if (layer.name() == Name(known)) layers.push_back({known, layer.holds(), layer.detail()});
    }
  }
  return layers;
}

}  // namespace hone::agent

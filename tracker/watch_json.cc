// SPDX-License-Identifier: Apache-2.0
#include "tracker/watch_json.h"

#include "proto/convert.h"
#include "tracker/enum_name.h"
#include "tracker/job_json.h"
#include "tracker/queue/night_verdict.h"

namespace hone::tracker {
namespace {

using WatchJson = nlohmann::ordered_json;

WatchJson NightNoticeToJson(const v1::FleetWatch& watch, const v1::FleetWatchDevice& device) {
  if (watch.spec().notify_url().empty()) return nullptr;
  const v1::JobNotice& notice = device.notice();
  return {
      {"due", device.has_notice() && !notice.closed()},
      {"attempts", notice.attempts()},
      {"problem", notice.problem()},
      {"told", device.told() == v1::FLEET_VERDICT_UNSPECIFIED ? WatchJson() : WatchJson(VerdictName(device.told()))}};
}

WatchJson DeviceRowToJson(const v1::FleetWatch& watch, const v1::FleetWatchDevice& device) {
  WatchJson nights = WatchJson::array();
  for (const v1::FleetNight& night : device.nights()) nights.push_back(FleetNightToJson(night));
  const v1::FleetNight* measured = NewestMeasuredNight(device);
  const v1::FleetNight* newest = device.nights().empty() ? nullptr : &*device.nights().rbegin();
  const bool has_reference = measured != nullptr && measured->reference_seconds() > 0;
  return {{"device", device.device()},
          {"verdict", newest == nullptr ? WatchJson() : WatchJson(VerdictName(newest->verdict()))},
          {"cause", newest == nullptr ? "" : newest->cause()},
          {"median_ms", ValueOrNull(measured != nullptr,
                                    measured == nullptr ? 0 : measured->median_seconds() * kMillisecondsPerSecond)},
          {"reference_ms",
           ValueOrNull(has_reference, has_reference ? measured->reference_seconds() * kMillisecondsPerSecond : 0)},
          {"change", ValueOrNull(has_reference, has_reference ? measured->change() : 0)},
          {"measured", measured == nullptr ? WatchJson() : TimeToJson(FromProto(measured->ended()))},
          {"job", device.open_job()},
          {"waiting_for", device.waiting_for()},
          {"notice", NightNoticeToJson(watch, device)},
          {"nights", nights}};
}

}  // namespace

std::string VerdictName(v1::FleetVerdict verdict) {
  return EnumName(v1::FleetVerdict_Name(verdict), "FLEET_VERDICT_", verdict);
}

nlohmann::ordered_json FleetNightToJson(const v1::FleetNight& night) {
  const bool ran = WasMeasured(night), has_reference = night.reference_seconds() > 0;
  return {{"due", TimeToJson(FromProto(night.due()))},
          {"ended", TimeToJson(FromProto(night.ended()))},
          {"job", night.job_id()},
          {"verdict", VerdictName(night.verdict())},
          {"cause", night.cause()},
          {"problem", night.problem()},
          {"median_ms", ValueOrNull(ran, night.median_seconds() * kMillisecondsPerSecond)},
          {"spread", ValueOrNull(ran, night.spread())},
          {"reference_ms", ValueOrNull(has_reference, night.reference_seconds() * kMillisecondsPerSecond)},
          {"change", ValueOrNull(has_reference, night.change())},
          {"target", night.target()},
          {"temperature_c", ValueOrNull(night.has_temperature_c(), night.temperature_c())},
          {"clock_mhz", ValueOrNull(night.has_clock_mhz(), night.clock_mhz())},
          {"throttled", night.throttled()},
          {"accepted", night.accepted()},
          {"environment", night.has_environment() ? EnvironmentToJson(night.environment()) : WatchJson()}};
}

nlohmann::ordered_json FleetWatchToJson(const v1::FleetWatch& watch) {
  const v1::FleetWatchSpec& spec = watch.spec();
  WatchJson devices = WatchJson::array();
  for (const v1::FleetWatchDevice& device : watch.devices()) devices.push_back(DeviceRowToJson(watch, device));
  return {{"name", spec.name()},
          {"package", FileToJson(spec.run().packages().empty() ? v1::FileName() : spec.run().packages(0))},
          {"at", spec.at()},
          {"next", TimeToJson(FromProto(watch.next()))},
          {"created", TimeToJson(FromProto(watch.created()))},
          {"submitted_by", spec.submitted_by()},
          {"slower_than", spec.slower_than()},
          {"seconds", spec.run().seconds()},
          {"threads", spec.run().threads()},
          {"shapes", spec.run().shapes()},
          {"notify_url", spec.notify_url()},
          {"devices", devices}};
}

}  // namespace hone::tracker

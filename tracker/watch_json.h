// SPDX-License-Identifier: Apache-2.0
// Fleet watches as JSON, which commands, the HTTP API and notices print alike. Pure.
#ifndef HONE_TRACKER_WATCH_JSON_H_
#define HONE_TRACKER_WATCH_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

#include "hone/v1/fleet_watch.pb.h"

namespace hone::tracker {

// "ok", "slower", "did_not_run".
std::string VerdictName(v1::FleetVerdict verdict);

// A night without its device.
nlohmann::ordered_json FleetNightToJson(const v1::FleetNight& night);

// A watch with a row for each device: the newest night, and all nights that the message has.
nlohmann::ordered_json FleetWatchToJson(const v1::FleetWatch& watch);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_WATCH_JSON_H_

// SPDX-License-Identifier: Apache-2.0
// Selects devices of a farm by words: one rule, for scheduling and for every command that names a device.
//
// The option `--device` takes words (README.md). A word is one of
//   AGENT         the id of the device's agent
//   AGENT/DEVICE  the device's own name
//   LABEL         a label that the device has, with any value
//   NAME=VALUE    a label that the device has, with this value
// Several words with commas between them must all match. Pure; safe from any thread. Start at MatchesWords.
#ifndef HONE_TRACKER_QUEUE_MATCHES_H_
#define HONE_TRACKER_QUEUE_MATCHES_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::tracker {

// The name of a device in the farm: "agent/device".
std::string NameOf(const std::string& agent_id, const std::string& device_id);
// The agent and the device of a name that NameOf made. An agent id contains no slash.
std::pair<std::string, std::string> SplitName(const std::string& name);

// A label as users write it: "rpi4", or "room=lab" where it has a value.
std::string LabelText(const std::string& name, const std::string& value);

// Whether all the words select the device. words: separated by commas. An empty word selects no device.
bool MatchesWords(std::string_view words, const std::string& agent_id, const v1::DeviceState& device);

// Whether the agent's device fulfils every condition.
bool Matches(const v1::Requirements& requirements, const std::string& agent_id, const v1::DeviceState& device);
// Job.waiting_for is "a device for CONDITIONS" if no device fulfils the job's conditions (Describe), and "DEVICE, which
// is REASON; wanted: CONDITIONS" if a device fulfils them but gets no work. These are the first words of the first
// form.
inline constexpr std::string_view kNoDevicePrefix = "a device for ";
// kInvalidArgument: the conditions are too long. The limits are far above a list of a lab's boards and CPU features.
absl::Status CheckRequirements(const v1::Requirements& requirements);
// The conditions in words: "board or rpi4, feature avx2". More than three CPU features are counted, not listed.
std::string Describe(const v1::Requirements& requirements);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_MATCHES_H_

// SPDX-License-Identifier: Apache-2.0
// Which devices of a farm are meant: one rule, for scheduling and for every command that names a device.
//
// A device is asked for by words, as `--device` takes them (README.md). A word is
//   AGENT         the name of its agent
//   AGENT/DEVICE  its own name
//   LABEL         a label that it has, whatever the value
//   NAME=VALUE    a label that it has, with this value
// and several with commas between them are all to be true of it. Pure; safe from any thread. Start at AnswersTo.
#ifndef HONE_TRACKER_QUEUE_MATCHES_H_
#define HONE_TRACKER_QUEUE_MATCHES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::tracker {

// A device in the farm: "agent/device".
std::string NameOf(const std::string& agent_id, const std::string& device_id);

// A label as people write it: "rpi4", "room=lab".
std::string LabelText(const std::string& name, const std::string& value);

// words: one word, or several with commas between. No device answers to an empty one.
bool AnswersTo(std::string_view words, const std::string& agent_id, const v1::DeviceState& device);

// Whether the agent's device fulfils every condition.
bool Matches(const v1::Requirements& requirements, const std::string& agent_id, const v1::DeviceState& device);
// How a job's waiting_for begins where no device that serves fulfils its conditions, and what is before the reason of
// one that does, and gets no work.
inline constexpr std::string_view kAbsentDevice = "a device for ", kOutOfWork = "; ";
// kInvalidArgument: they are longer than a list of all boards of a lab with every feature that a CPU has.
absl::Status CheckNeeds(const v1::Requirements& requirements);
// The conditions in words: "board or rpi4, feature avx2".
std::string Describe(const v1::Requirements& requirements);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_MATCHES_H_

// SPDX-License-Identifier: Apache-2.0
#include "tracker/end_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "proto/convert.h"

namespace hone::tracker {
namespace {

// A tuner ends this much before a limit at most: it keeps time for the final comparison, and before the end time also
// for the run of the whole model (tuner/confirmation_time.h).
constexpr double kReservedShare = 0.1, kReservedShareWithModel = 0.35;
constexpr absl::Duration kReservedMin = absl::Seconds(5);

bool IsUsedUp(absl::Duration left, absl::Duration whole, double reserved) {
  return left <= std::max(kReservedMin, whole * reserved);
}

std::string Text(absl::Duration time) { return absl::FormatDuration(absl::Trunc(time, absl::Seconds(1))); }

// The limit that the job reached; nullopt: none.
std::optional<std::string> LimitReached(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  if (spec.trials() > 0 && job.progress().trials() >= spec.trials()) {
    return fmt::format("it made the {} trials that it was allowed", spec.trials());
  }
  if (spec.has_time_budget()) {
    const absl::Duration budget = FromProto(spec.time_budget());
    if (IsUsedUp(budget - absl::Seconds(job.progress().seconds()), budget, kReservedShare)) {
      return fmt::format("its tuning time of {} was used up", Text(budget));
    }
  }
  if (spec.has_until() && job.has_ended() && job.has_created()) {
    const absl::Time until = FromProto(spec.until());
    const double reserved = spec.has_model() ? kReservedShareWithModel : kReservedShare;
    if (IsUsedUp(until - FromProto(job.ended()), until - FromProto(job.created()), reserved)) {
      return "it reached its end time";
    }
  }
  return std::nullopt;
}

// "; 40 of 64 trials, 6m20s of tuning time and 7m until its end time were left"; "" where the job has no such limits.
std::string Left(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  std::vector<std::string> left;
  if (spec.trials() > 0) {
    left.push_back(fmt::format("{} of {} trials", spec.trials() - job.progress().trials(), spec.trials()));
  }
  if (spec.has_time_budget()) {
    const absl::Duration time = FromProto(spec.time_budget()) - absl::Seconds(job.progress().seconds());
    left.push_back(Text(time) + " of tuning time");
  }
  if (spec.has_until() && job.has_ended()) {
    left.push_back(Text(FromProto(spec.until()) - FromProto(job.ended())) + " until its end time");
  }
  std::string text;
  for (size_t i = 0; i < left.size(); ++i) {
    text += (i == 0 ? "; " : i + 1 == left.size() ? " and " : ", ") + left[i];
  }
  return text.empty() ? text : text + " were left";
}

std::string EndOfTuning(const v1::Job& job) {
  if (job.spec().workloads().empty()) return "the model has no kernel that could be tuned";
  const auto& workloads = job.progress().workloads();
  const auto not_measured = std::count_if(workloads.begin(), workloads.end(), [](const v1::WorkloadProgress& workload) {
    return !workload.trouble().empty();
  });
  const std::string troubles =
      not_measured == 0 ? "" : fmt::format("; {} of its workloads could not be measured", not_measured);
  if (const std::optional<std::string> limit = LimitReached(job)) return *limit + troubles;
  if (job.progress().trials() == 0) {
    return "no trial was made: the records already have as many trials as this budget allows or as are useful, or the "
           "time was too short for one" +
           troubles;
  }
  return "the search of every workload has converged: more trials would hardly find faster kernels" + Left(job) +
         troubles;
}

}  // namespace

std::string EndReason(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_SUCCEEDED:
      return job.spec().has_run() ? "" : EndOfTuning(job);
    case v1::JOB_STATE_FAILED:
      return job.error();
    case v1::JOB_STATE_CANCELLED:
      return job.has_started() ? "it was cancelled" : "it was cancelled before it began";
    default:
      return "";
  }
}

}  // namespace hone::tracker

// SPDX-License-Identifier: Apache-2.0
// Views of the farm for pages and events, read from the shell. Each holds the farm's lock no longer than a client's
// call.
#ifndef HONE_TRACKER_HTTP_FARM_VIEW_H_
#define HONE_TRACKER_HTTP_FARM_VIEW_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/v1/job.pb.h"
#include "tracker/http/json.h"
#include "tracker/shell.h"

namespace hone::tracker {

inline constexpr size_t kPageJobsMax = 500;  // jobs in one page of a list, and jobs whose changes are events

// The jobs as JobQueue::SummaryOf; unknown ids are left out. May wait for one commit.
std::vector<v1::Job> GetJobs(Shell& shell, const std::vector<std::string>& ids);

// How the latency of a job's model developed; empty for an unknown job.
std::vector<LatencyHistory::Point> LatenciesOf(Shell& shell, const std::string& job);

// All running jobs, however many, and the newest queued ones that fill up to `most`: by id, with a text that changes
// with the job's state and progress.
std::map<std::string, std::string> VersionsOfOpenJobs(Shell& shell, size_t most);

// The ids of jobs that have not ended.
std::set<std::string> OpenAmong(Shell& shell, const std::set<std::string>& ids);

// What each busy device measures, by "agent/device".
std::map<std::string, Running> RunningOn(Shell& shell);

// The overview's counts, without its list of running jobs.
Json OverviewToJson(Shell& shell, const std::filesystem::path& records);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_FARM_VIEW_H_

// SPDX-License-Identifier: Apache-2.0
// The farm as pages and events show it: asked of the shell, each within what one call of a client may take.
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

inline constexpr size_t kMostJobs = 500;  // of a page, and those whose changes its events tell

// What JobBook::LineOf says of them; those that went meanwhile lack. May wait for a commit, for all of them once.
std::vector<v1::Job> GetJobs(Shell& shell, const std::vector<std::string>& ids);

// All running jobs, and as many of the newest queued ones as make it `most`, with a text that changes with their state
// and progress.
std::map<std::string, std::string> SignsOfOpenJobs(Shell& shell, size_t most);

// Those of the jobs that have not ended.
std::set<std::string> OpenAmong(Shell& shell, const std::set<std::string>& ids);

// What devices measure, by their name.
std::map<std::string, Running> RunningOn(Shell& shell);

// Counts, without the running jobs.
Json OverviewToJson(Shell& shell, const std::filesystem::path& records);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_FARM_VIEW_H_

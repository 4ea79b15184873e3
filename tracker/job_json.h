// SPDX-License-Identifier: Apache-2.0
// Parts of a job that commands and the HTTP API print alike, as JSON. Pure. The whole documents differ, and are made by
// cli/job_text.h and tracker/http/json.h.
#ifndef HONE_TRACKER_JOB_JSON_H_
#define HONE_TRACKER_JOB_JSON_H_

#include <nlohmann/json.hpp>

#include "hone/v1/job.pb.h"

namespace hone::tracker {

// Where the time went, and what became of the candidates that were looked at.
nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent);
// Of hone submit --notify; null of a job without.
nlohmann::ordered_json NoticeToJson(const v1::Job& job);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_JOB_JSON_H_

// SPDX-License-Identifier: Apache-2.0
#include "tracker/job_json.h"

namespace hone::tracker {

nlohmann::ordered_json NoticeToJson(const v1::Job& job) {
  if (job.spec().notify_url().empty()) return nullptr;
  const v1::JobNotice& notice = job.notice();
  return {{"url", job.spec().notify_url()},
          {"delivered", notice.closed() && notice.problem().empty()},
          {"given_up", notice.closed() && !notice.problem().empty()},
          {"attempts", notice.attempts()},
          {"problem", notice.problem()}};
}

nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent) {
  return {{"proposing_seconds", spent.proposing_seconds()},
          {"learning_seconds", spent.learning_seconds()},
          {"building_seconds", spent.building_seconds()},
          {"waiting_seconds", spent.waiting_seconds()},
          {"measuring_seconds", spent.measuring_seconds()},
          {"drawn", spent.drawn()},
          {"illegal", spent.illegal()},
          {"repeated", spent.repeated()}};
}

}  // namespace hone::tracker

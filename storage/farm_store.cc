// SPDX-License-Identifier: Apache-2.0
#include "storage/farm_store.h"

namespace hone::storage {

StoredJob ToStored(const v1::Job& job, bool with_spec) {
  v1::Job state;
  state.set_id(job.id());
  state.set_state(job.state());
  *state.mutable_progress() = job.progress();
  state.set_error(job.error());
  if (job.has_created()) *state.mutable_created() = job.created();
  if (job.has_started()) *state.mutable_started() = job.started();
  if (job.has_ended()) *state.mutable_ended() = job.ended();
  state.set_attempts(job.attempts());
  state.set_fruitless(job.fruitless());
  if (job.has_needs()) *state.mutable_needs() = job.needs();
  if (job.has_notice()) *state.mutable_notice() = job.notice();
  return {with_spec ? job.spec().SerializeAsString() : "", state.SerializeAsString()};
}

void StateChanges::Add(StateChanges later) {
  for (auto& [id, job] : later.jobs) {
    std::optional<StoredJob>& mine = jobs[id];
    if (mine.has_value() && job.has_value() && job->spec.empty()) job->spec = std::move(mine->spec);
    mine = std::move(job);
  }
  for (auto& [agent_id, reason] : later.drained) drained[agent_id] = std::move(reason);
  for (auto& [device, record] : later.health) health[device] = std::move(record);
  for (auto& [key, row] : later.watches) watches[key] = std::move(row);
}

}  // namespace hone::storage

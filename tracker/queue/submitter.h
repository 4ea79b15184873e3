// SPDX-License-Identifier: Apache-2.0
// Whose a job, a watch and their files are (decision 0293). submitted_by is for display only: two identities may have
// one name, with different roles.
#ifndef HONE_TRACKER_QUEUE_SUBMITTER_H_
#define HONE_TRACKER_QUEUE_SUBMITTER_H_

#include <string>

namespace hone::tracker {

// The URI of the submitter's identity; on a private socket, where there are no identities, the name of its user.
template <typename Spec>  // v1::JobSpec or v1::FleetWatchSpec
const std::string& SubmitterOf(const Spec& spec) {
  return spec.submitter().empty() ? spec.submitted_by() : spec.submitter();
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_SUBMITTER_H_

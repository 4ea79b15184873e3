// SPDX-License-Identifier: Apache-2.0
// Receipts of leases. A receipt goes out with every lease and comes back with its result. It lets a tracker accept the
// result of a lease that it has forgotten, as after a restart. It is signed with a key of the farm, so that it proves
// that the farm leased this very batch to this agent.
//
// Also here: which part of a result is recorded, and under which ids. Pure functions. The farm's key is stored with the
// tracker's state.
#ifndef HONE_TRACKER_QUEUE_RECEIPT_H_
#define HONE_TRACKER_QUEUE_RECEIPT_H_

#include <memory>
#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::tracker {

// Outcomes of a batch that must be recorded: measured by one lease, or given up. A candidate is recorded once for its
// batch. Only times with the same visit_id may be compared, because they were measured side by side.
struct Recordable {
  std::string batch_id, job_id;
  std::shared_ptr<const v1::Batch> batch;
  v1::BatchResult result;  // outcomes of some of the candidates
  std::string visit_id;
  // What the job says about the batch (JobSpec.name, WorkloadSpec); empty: the tracker does not know the job any more.
  std::string model = {}, title = {}, nodes = {};
};

// The id under which the results of a batch's visit are recorded. visit: from 1. The first visit has the batch's id,
// the second "BATCH.2".
std::string VisitId(const std::string& batch_id, int visit);
std::string BatchOfVisit(const std::string& visit_id);

// The fields of a batch that go into records, which are those that a receipt signs. The artifact is not among them.
v1::Batch Description(const v1::Batch& batch);

// Returns the receipt with its signature, which covers all the arguments.
v1::Receipt MakeReceipt(const std::string& key, const std::string& lease_id, const std::string& agent_id,
                        v1::Receipt receipt, const v1::Batch& batch);

// Whether MakeReceipt made the result's receipt, for the same lease, agent and batch.
bool IsReceiptValid(const std::string& key, const std::string& agent_id, const v1::LeaseResult& result);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_RECEIPT_H_

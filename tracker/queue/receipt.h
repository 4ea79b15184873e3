// SPDX-License-Identifier: Apache-2.0
// Receipts of leases: what a tracker gives out with a lease, so that it knows the result again when it has forgotten
// the lease, as after a restart. Whoever holds one has measured that very batch for this farm; nobody can make one up.
//
// And what is recorded of a result, under which ids. Pure functions; the key is the farm's, and stored.
#ifndef HONE_TRACKER_QUEUE_RECEIPT_H_
#define HONE_TRACKER_QUEUE_RECEIPT_H_

#include <memory>
#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::tracker {

// Measured or given up under a batch. A candidate is recorded once for its batch; only what one visit measured is
// compared with one another.
struct Recordable {
  std::string batch_id, job_id;
  std::shared_ptr<const v1::Batch> batch;
  v1::BatchResult result;  // outcomes of some of the candidates
  std::string visit_id;
};

// Which visit it was for its batch, from 1. The first has the batch's id, the second "BATCH.2".
std::string VisitId(const std::string& batch_id, int visit);
std::string BatchOfVisit(const std::string& visit_id);

// What of a batch goes into records; all that a receipt vouches for.
v1::Batch Description(const v1::Batch& batch);

// The receipt, signed.
v1::Receipt MakeReceipt(const std::string& key, const std::string& lease_id, const std::string& agent_id,
                        v1::Receipt receipt, const v1::Batch& batch);

// Whether the result's receipt is one that MakeReceipt made for its lease, this agent and its batch.
bool Vouches(const std::string& key, const std::string& agent_id, const v1::LeaseResult& result);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_RECEIPT_H_

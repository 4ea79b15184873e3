// Receipts of leases: what a tracker gives out with a lease, so that it knows the result again when it has forgotten
// the lease, as after a restart. Whoever holds one has measured that very batch for this farm; nobody can make one up.
//
// Pure functions; the key is the farm's, and stored.
#ifndef HONE_TRACKER_QUEUE_RECEIPT_H_
#define HONE_TRACKER_QUEUE_RECEIPT_H_

#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::tracker {

// What of a batch goes into records; all that a receipt vouches for.
v1::Batch Description(const v1::Batch& batch);

// The receipt, signed.
v1::Receipt MakeReceipt(const std::string& key, const std::string& lease_id, const std::string& agent_id,
                        v1::Receipt receipt, const v1::Batch& batch);

// Whether the result's receipt is one that MakeReceipt made for its lease, this agent and its batch.
bool Vouches(const std::string& key, const std::string& agent_id, const v1::LeaseResult& result);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_RECEIPT_H_

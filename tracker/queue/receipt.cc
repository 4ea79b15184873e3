// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/receipt.h"

#include <fmt/format.h>

#include "base/digest.h"

namespace hone::tracker {
namespace {

// A keyed hash, applied twice as in HMAC. It covers the digest of each part, so that no two splits into parts have the
// same text.
std::string Sign(const std::string& key, const v1::Receipt& receipt, const std::string& lease_id,
                 const std::string& agent_id, const v1::Batch& description) {
  const std::string parts = fmt::format("{} {} {} {} {} {}", Sha256Hex(lease_id), Sha256Hex(agent_id),
                                        Sha256Hex(receipt.batch_id()), Sha256Hex(receipt.job_id()),
                                        Sha256Hex(receipt.device_id()), Sha256Hex(description.SerializeAsString()));
  return Sha256Hex(key + "outer" + Sha256Hex(key + "inner" + parts));
}

}  // namespace

std::string VisitId(const std::string& batch_id, int visit) {
  return visit == 1 ? batch_id : fmt::format("{}.{}", batch_id, visit);
}

std::string BatchOfVisit(const std::string& visit_id) { return visit_id.substr(0, visit_id.find('.')); }

// Must not copy a map field: the encoded order of a map varies, and the receipt signs the encoded bytes.
v1::Batch Description(const v1::Batch& batch) {
  v1::Batch description;
  description.set_workload_digest(batch.workload_digest());
  description.set_target(batch.target());
  description.set_compiler_version(batch.compiler_version());
  description.set_workload(batch.workload());
  description.set_search_seed(batch.search_seed());
  *description.mutable_tolerance() = batch.tolerance();
  description.set_fill_seed(batch.fill_seed());
  description.set_threads(batch.threads());
  description.set_final(batch.final());
  description.set_op(batch.op());
  description.set_flops(batch.flops());
  description.set_sizes(batch.sizes());
  for (const v1::Candidate& candidate : batch.candidates()) {
    v1::Candidate* described = description.add_candidates();
    *described = candidate;
    described->clear_kernel();
  }
  return description;
}

v1::Receipt MakeReceipt(const std::string& key, const std::string& lease_id, const std::string& agent_id,
                        v1::Receipt receipt, const v1::Batch& batch) {
  receipt.set_signature(Sign(key, receipt, lease_id, agent_id, Description(batch)));
  return receipt;
}

bool IsReceiptValid(const std::string& key, const std::string& agent_id, const v1::LeaseResult& result) {
  if (result.receipt().signature().empty()) return false;
  return result.receipt().signature() ==
         Sign(key, result.receipt(), result.lease().lease_id(), agent_id, Description(result.batch()));
}

}  // namespace hone::tracker

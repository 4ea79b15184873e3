// The records room's plain values and the protocol's messages, into one another. The only place of the tracker that
// knows both.
#ifndef HONE_TRACKER_CONVERT_H_
#define HONE_TRACKER_CONVERT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/status.h"
#include "hone/v1/record.pb.h"
#include "records/store.h"
#include "tracker/queue/batches.h"

namespace hone::tracker {

v1::Record ToProto(const records::StoredRecord& stored);
v1::BestRecordResponse ToProto(const records::BestRecord& best);  // without match and similarity
// kInvalidArgument: an outcome is missing or of an unknown kind.
absl::StatusOr<records::Record> FromProto(const v1::Record& record);
records::Filter FromProto(const v1::QueryRecordsRequest& request);
records::Filter FilterOf(const v1::RecordKey& key);  // empty parts match everything
records::Key FromProto(const v1::RecordKey& key);
v1::FailureKind ToProto(records::FailureKind kind);

// One record per candidate of a finished (or given up) piece of a batch of that farm. Outcomes that say nothing are
// left out.
std::vector<records::Record> ToRecords(const std::string& farm_id, const Recordable& recordable);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_CONVERT_H_

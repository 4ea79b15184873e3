// SPDX-License-Identifier: Apache-2.0
// Conversion between the values of the records room and messages of the protocol, for the tracker and for programs that
// ask a tracker for records.
#ifndef HONE_TRACKER_CONVERT_H_
#define HONE_TRACKER_CONVERT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/status.h"
#include "hone/v1/record.pb.h"
#include "proto/convert.h"
#include "records/store.h"
#include "tracker/queue/batches.h"

namespace hone::tracker {

using hone::FromProto;
using hone::ToProto;

v1::Record ToProto(const records::StoredRecord& stored);
v1::BestRecordResponse ToProto(const records::BestRecord& best);        // without match and similarity
v1::BestRecordResponse ToProto(const records::NearestRecord& nearest);  // with them
v1::RecordKey ToProto(const records::Key& key);
v1::QueryRecordsRequest ToProto(const records::Filter& filter);
v1::ListBestRequest BestRequestOf(const records::Filter& filter);
v1::RecordMatch ToProto(records::Closeness closeness);

// kInvalidArgument: an outcome is missing or of an unknown kind. A record without a time gets the current time. An
// optional number out of its range, as of a broken sensor, counts as not known. Validate (record.h) checks the rest.
absl::StatusOr<records::Record> FromProto(const v1::Record& record);
// The response must have a record. Errors as above.
absl::StatusOr<records::BestRecord> FromProto(const v1::BestRecordResponse& response);
// kInvalidArgument: an unknown kind of failure, or a limit below 0.
absl::StatusOr<records::Filter> FromProto(const v1::QueryRecordsRequest& request);
records::Filter FromProto(const v1::ListBestRequest& request);
records::Key FromProto(const v1::RecordKey& key);

// One record for each candidate of a batch piece that was measured or given up. Unset outcomes are left out. farm_id
// makes the ids of the records unique among farms.
std::vector<records::Record> ToRecords(const std::string& farm_id, const Recordable& recordable);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_CONVERT_H_

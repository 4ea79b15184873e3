// SPDX-License-Identifier: Apache-2.0
// The records of a farm, queried from its tracker. docs/howto/give-a-farm-certificates.md says which roles may do so.
#ifndef HONE_CLI_TRACKER_RECORDS_H_
#define HONE_CLI_TRACKER_RECORDS_H_

#include <memory>
#include <string>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "hone/v1/record.grpc.pb.h"
#include "records/source.h"

namespace hone::cli {

// Errors are those of the tracker, prefixed with its address. Thread-safe.
class TrackerRecords final : public records::Source {
 public:
  TrackerRecords(const std::shared_ptr<grpc::Channel>& channel, std::string address)
      : stub_(v1::RecordService::NewStub(channel)), address_(std::move(address)) {}

  std::string name() const override { return "tracker " + address_; }
  absl::StatusOr<records::AppendReport> Append(std::span<const records::Record> records) override;
  absl::StatusOr<std::vector<records::BestRecord>> AllBest(const records::Filter& filter) const override;
  absl::StatusOr<int64_t> Visit(const records::Filter& filter,
                                const std::function<absl::Status(const records::StoredRecord&)>& visit) const override;
  absl::StatusOr<records::Stats> Summarize() const override;

 private:
  absl::Status Annotated(const grpc::Status& status) const;
  absl::Status CheckListEnd(const grpc::Status& end) const;

  const std::unique_ptr<v1::RecordService::Stub> stub_;
  const std::string address_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_RECORDS_H_

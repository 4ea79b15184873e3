// SPDX-License-Identifier: Apache-2.0
// Sends files of this machine to a tracker, for commands, and shows on standard error how far each is.
//
// The transfer itself is in files/transfer.h.
#ifndef HONE_CLI_FILE_SENDER_H_
#define HONE_CLI_FILE_SENDER_H_

#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/file.pb.h"

namespace hone::cli {

class FileSender {
 public:
  // The stop ends the transfers, and so does the time `until`, by the wall clock.
  FileSender(std::shared_ptr<grpc::Channel> channel, std::stop_token stop, absl::Time until = absl::InfiniteFuture())
      : channel_(std::move(channel)), stop_(std::move(stop)), until_(until) {}

  // Sends the file, unless this object has sent it before. Errors: those of FileTransfer::Upload; kCancelled after a
  // stop; kDeadlineExceeded at `until`.
  absl::StatusOr<v1::FileName> Send(const std::string& path);

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::stop_token stop_;
  const absl::Time until_;
  std::map<std::string, v1::FileName> sent_;  // by path
};

}  // namespace hone::cli

#endif  // HONE_CLI_FILE_SENDER_H_

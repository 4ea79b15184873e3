// SPDX-License-Identifier: Apache-2.0
// The options of every command that talks to a tracker: its address, and the folder of the user's certificate.
#ifndef HONE_CLI_TRACKER_OPTIONS_H_
#define HONE_CLI_TRACKER_OPTIONS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "transport/transport.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct TrackerOptions {
  std::string address;   // HOST:PORT or unix:/PATH; empty = not given
  std::string identity;  // folder of the certificate (pki/identity_folder.h); empty = the user's
  bool required = false;

  // required: the command needs a tracker. Without --tracker it uses the one that the user has joined.
  void AddTo(CLI::App* command, bool required);
  bool given() const { return !address.empty(); }
  // Opens a channel to the tracker, and fills in the options that were not given. Errors say what to do: no tracker is
  // known, or trackers would reject the certificate (pki::CheckCertificateIn). Prints a warning if the certificate
  // expires soon. Does not wait for the tracker to answer.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect();
};

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_OPTIONS_H_

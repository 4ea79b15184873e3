// SPDX-License-Identifier: Apache-2.0
// The options of every command that talks to a tracker: where it is, and how to prove who we are.
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
  std::string address;   // HOST:PORT or unix:/PATH
  std::string identity;  // folder (pki/identity_folder.h); empty: the user's
  bool required = false;

  // required: the command makes no sense without a tracker; without --tracker it is the one that the user has joined.
  void AddTo(CLI::App* command, bool required);
  bool given() const { return !address.empty(); }
  // Fills in what was not given. An error wherever a tracker is required and none is known, and where the certificate
  // is none that a tracker takes (pki::CheckCertificateIn): it says what to do. One that ends soon is warned of.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect();
};

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_OPTIONS_H_

// SPDX-License-Identifier: Apache-2.0
// The options of every command that talks to a tracker: its address, and the folder of the user's certificate.
#ifndef HONE_CLI_TRACKER_OPTIONS_H_
#define HONE_CLI_TRACKER_OPTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "transport/transport.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct TrackerOptions {
  std::string address;   // HOST:PORT or unix:/PATH, of --tracker or else of HONE_TRACKER; empty = not given
  std::string identity;  // folder of the certificate (pki/identity_folder.h); empty = the user's

  // kRequired: the command needs a tracker; if none is given, it uses the one that the user has joined.
  enum class Need { kOptional, kRequired };
  // others: values of options that name another place for records, such as --records FILE. HONE_TRACKER does not count
  // if one of them is given: what the command line says comes before the environment. They must live as long as
  // `command`, as this object must.
  void AddTo(CLI::App* command, Need need, std::vector<const std::string*> others = {});
  bool given() const { return !address.empty(); }
  // Opens a channel to the tracker, and fills in the options that were not given. Errors say what to do: no tracker is
  // known, or trackers would reject the certificate (pki::CheckCertificateIn). Prints a warning if the certificate
  // expires soon. Does not wait for the tracker to answer.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect();
};

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_OPTIONS_H_

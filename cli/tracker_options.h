// The options of every command that talks to a tracker: where it is, and how to prove who we are.
#ifndef HONE_CLI_TRACKER_OPTIONS_H_
#define HONE_CLI_TRACKER_OPTIONS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "transport/transport.h"

namespace hone::cli {

struct TrackerOptions {
  std::string address;  // HOST:PORT or unix:/PATH
  TlsFiles tls;

  // required: the command makes no sense without --tracker.
  void AddTo(CLI::App* command, bool required);
  bool given() const { return !address.empty(); }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() const { return OpenChannel(address, tls); }
};

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_OPTIONS_H_

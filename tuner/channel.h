// A channel to a tracker: plain text on loopback only, TLS with a client certificate everywhere else.
#ifndef HONE_TUNER_CHANNEL_H_
#define HONE_TUNER_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace hone::tuner {

struct ChannelOptions {
  std::string address;  // HOST:PORT
  // PEM files: whom to trust, and who we are. All or none.
  std::string ca_file, certificate_file, key_file;
};

// Does not connect yet. InvalidArgument: an address without a port, files missing where the tracker is not on this
// machine. NotFound: a file that cannot be read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options);

// The call's failure as a Status of ours, with "tracker ADDRESS: " before its text.
absl::Status FromGrpc(const grpc::Status& status, const std::string& address);

}  // namespace hone::tuner

#endif  // HONE_TUNER_CHANNEL_H_

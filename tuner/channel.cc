#include "tuner/channel.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/status.h"

namespace hone::tuner {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;  // a batch carries its machine code

bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.substr(0, 4) == "127.";
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const ChannelOptions& options) {
  const bool none = options.ca_file.empty() && options.certificate_file.empty() && options.key_file.empty();
  const bool all = !options.ca_file.empty() && !options.certificate_file.empty() && !options.key_file.empty();
  if (none && IsLoopback(options.address)) return grpc::InsecureChannelCredentials();
  if (!all) {
    return absl::InvalidArgumentError(
        fmt::format("tracker {} is not on this machine: give the files of the certificate authority, of your "
                    "certificate and of its key",
                    options.address));
  }
  grpc::SslCredentialsOptions ssl;
  HONE_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadFile(options.ca_file));
  HONE_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadFile(options.certificate_file));
  HONE_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadFile(options.key_file));
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  const size_t colon = options.address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == options.address.size()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no tracker address; write HOST:PORT", options.address));
  }
  HONE_ASSIGN_OR_RETURN(const auto credentials, Credentials(options));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A peer that vanished without a word is noticed within seconds, not minutes.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(options.address, credentials, arguments);
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      fmt::format("tracker {}: {}", address, status.error_message()));
}

}  // namespace hone::tuner

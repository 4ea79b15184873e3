#include "transport/transport.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "base/private_folder.h"
#include "base/status.h"

namespace hone {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr int kMinPingIntervalMs = 5'000;
constexpr int kMinReconnectMs = 200;
constexpr int kMaxReconnectMs = 10'000;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file || bytes.str().empty()) {
    return absl::InvalidArgumentError("cannot read the TLS file '" + path + "'; give an existing PEM file");
  }
  return bytes.str();
}

struct Pem {
  std::string certificate, key, authority;
};

absl::StatusOr<Pem> ReadPem(const TlsFiles& tls) {
  if (tls.certificate.empty() || tls.key.empty() || tls.authority.empty()) {
    return absl::InvalidArgumentError(
        "HOST:PORT needs TLS, and TLS all three files: certificate, key and authority; programs of one user on one "
        "machine may speak over unix:/PATH without");
  }
  Pem pem;
  for (const auto& [path, text] : {std::pair(&tls.certificate, &pem.certificate), std::pair(&tls.key, &pem.key),
                                   std::pair(&tls.authority, &pem.authority)}) {
    absl::StatusOr<std::string> bytes = ReadFile(*path);
    if (!bytes.ok()) return bytes.status();
    *text = *std::move(bytes);
  }
  return pem;
}

constexpr std::string_view kSocketPrefix = "unix:/";

// The server of a socket is known by the folder it lies in, its clients by what the kernel says of them.
absl::Status CheckSocket(const std::filesystem::path& path, const TlsFiles& tls) {
  if (tls.none()) return CheckPrivateFolder(path.parent_path());
  return absl::InvalidArgumentError("no certificate is shown on a unix socket; leave the TLS files out");
}

}  // namespace

std::optional<std::filesystem::path> SocketPath(const std::string& address) {
  if (address.rfind(kSocketPrefix, 0) != 0) return std::nullopt;
  return address.substr(kSocketPrefix.size() - 1);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const TlsFiles& tls) {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (const auto socket = SocketPath(address)) {
    HONE_RETURN_IF_ERROR(CheckSocket(*socket, tls));
    credentials = grpc::InsecureChannelCredentials();
  } else {
    HONE_ASSIGN_OR_RETURN(const Pem pem, ReadPem(tls));
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = pem.authority;
    options.pem_private_key = pem.key;
    options.pem_cert_chain = pem.certificate;
    credentials = grpc::SslCredentials(options);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // Without these a peer whose cable is pulled stays "connected" for a quarter of an hour.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMinReconnectMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  // A proxy from the environment has no business between the rooms of a farm.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels of one process share no connection: a large upload on one never delays heartbeats on another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& tls) {
  HONE_ASSIGN_OR_RETURN(const Pem pem, ReadPem(tls));
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem.authority;
  options.pem_key_cert_pairs.push_back({pem.key, pem.certificate});
  return grpc::SslServerCredentials(options);
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  // Two trackers on one port would share the agents at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

grpc::Status ToGrpc(const absl::Status& status) {
  // The two enumerations agree by design.
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message()));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace hone

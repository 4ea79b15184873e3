// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <charconv>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/private_folder.h"
#include "base/protocol_version.h"
#include "base/read_file.h"
#include "base/status.h"

namespace hone {
namespace {

// Longer than a call is held (20 s), so that programs that call all the time send no pings. Pings of thousands of
// agents would take half of an idle tracker's CPU time.
constexpr int kKeepaliveMs = 30'000;
constexpr int kPingTimeoutMs = 10'000;
// Keep-alive on both sides; the server pings less often. Without it, a peer whose cable was pulled stays "connected"
// for a quarter of an hour.
constexpr std::pair<const char*, int> kKeepalive[] = {{GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs},
                                                      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs},
                                                      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
                                                      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}};
// A server needs pings only to drop connections whose peer is gone; busy agents show by their calls that they are
// alive. It may have thousands of idle connections to ping.
constexpr int kServerKeepaliveMs = 60'000;
constexpr int kPingIntervalMsMin = 5'000;
// The timeout of one attempt to connect: TCP, TLS and HTTP/2, with one lost packet. gRPC calls it
// MIN_RECONNECT_BACKOFF; the two constants below it bound the pauses between attempts.
constexpr int kConnectMs = 3'000;
constexpr int kReconnectPauseMsMin = 200;
constexpr int kReconnectPauseMsMax = 10'000;
// The server's limits for a connection. gRPC 1.51 cannot limit their number; the system does (LimitNOFILE).
constexpr int kHandshakeMs = 10'000;        // for TLS, so that silent peers do not hold file descriptors
constexpr int kCallsPerConnection = 100;    // at a time; further calls wait in the client
constexpr int kIdleConnectionMs = 300'000;  // a connection without calls is closed; the client connects again
// Memory for messages in transit, of all connections of a server. The tracker's service has twice as much (MemoryMax in
// packaging/tracker); the rest is for its state and for messages that it has read. Above this limit gRPC ends calls
// with large messages, and their callers try again.
constexpr size_t kConnectionBytesMax = size_t{2} << 30;
constexpr unsigned kRereadSeconds = 5;  // how often a server looks whether its certificate was replaced

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadWholeFile(path);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError("cannot read the TLS file '" + path + "'; give an existing PEM file");
}

struct Pem {
  std::string identity, authority;
};

absl::StatusOr<Pem> ReadPem(const TlsFiles& tls) {
  if (tls.identity.empty() || tls.authority.empty()) {
    return absl::InvalidArgumentError(
        "HOST:PORT needs TLS, and TLS needs a certificate: join the farm first (hone-agent join, hone join), or name "
        "an identity folder; for programs of one user on one machine, unix:/PATH needs no certificate");
  }
  Pem pem;
  HONE_ASSIGN_OR_RETURN(pem.identity, ReadFile(tls.identity));
  HONE_ASSIGN_OR_RETURN(pem.authority, ReadFile(tls.authority));
  return pem;
}

constexpr std::string_view kSocketPrefix = "unix:/";

// The folder's permissions prove who serves a socket; the kernel tells the server the user of each client.
absl::Status CheckSocket(const std::filesystem::path& path, const TlsFiles& tls) {
  if (!tls.none()) {
    return absl::InvalidArgumentError("a unix socket uses no certificates; omit --identity");
  }
  if (path.string().find(',') != std::string::npos) {  // gRPC splits addresses at commas, even at escaped ones
    return absl::InvalidArgumentError(fmt::format("{}: the path of a socket must not contain a comma", path.string()));
  }
  return CheckPrivateFolder(path.parent_path());
}

// Turns off Abseil's deadlock detection, which Debian builds in and gRPC's locks use. It takes an eighth of the CPU
// time of a tracker with many agents.
void DisableDeadlockDetection() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

grpc::ChannelArguments ArgumentsOfChannels() {
  DisableDeadlockDetection();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  for (const auto& [name, value] : kKeepalive) arguments.SetInt(name, value);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectPauseMsMin);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectPauseMsMax);
  // The user agent tells the tracker the protocol version of the program; calls carry it nowhere else.
  arguments.SetUserAgentPrefix(fmt::format("{}{}", kProtocolPrefix, kProtocolVersion));
  // Proxies that the environment names are not used within a farm.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels of one process share no connection: a large upload on one never delays heartbeats on another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// gRPC reads its addresses as URIs, where a path may have '#', '?' and '%' only in this form (RFC 3986).
std::string UriOf(const std::filesystem::path& socket) {
  constexpr std::string_view kPlain = "-._~/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string uri = "unix:";
  for (const char c : socket.string()) {
    uri += kPlain.find(c) != std::string_view::npos ? std::string(1, c)
                                                    : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

}  // namespace

std::optional<std::filesystem::path> SocketPath(const std::string& address) {
  if (!address.starts_with(kSocketPrefix)) return std::nullopt;
  return address.substr(kSocketPrefix.size() - 1);
}

absl::StatusOr<std::string> HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    const auto [last, error] = std::from_chars(address.data() + colon + 1, end, port);
    good = error == std::errc() && last == end && port > 0;
  }
  if (!good) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is not HOST:PORT; give the address at which the machines of the farm reach the tracker", address));
  }
  const std::string host = address.substr(0, colon);
  return host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const TlsFiles& tls) {
  if (const auto socket = SocketPath(address)) {
    HONE_RETURN_IF_ERROR(CheckSocket(*socket, tls));
    return grpc::CreateCustomChannel(UriOf(*socket), grpc::InsecureChannelCredentials(), ArgumentsOfChannels());
  }
  HONE_ASSIGN_OR_RETURN(const Pem pem, ReadPem(tls));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pem.authority;
  options.pem_private_key = pem.identity;
  options.pem_cert_chain = pem.identity;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), ArgumentsOfChannels());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenAnonymousChannel(const std::string& address,
                                                                    const std::string& authority) {
  if (SocketPath(address)) return absl::InvalidArgumentError("joining needs HOST:PORT, not a unix socket");
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = authority;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), ArgumentsOfChannels());
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& tls,
                                                                           AnonymousClients anonymous_clients) {
  HONE_RETURN_IF_ERROR(ReadPem(tls).status());  // reports unreadable files now instead of at the first handshake
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(tls.identity, tls.identity, tls.authority,
                                                                           kRereadSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(anonymous_clients == AnonymousClients::kAccept
                                    ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  DisableDeadlockDetection();
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  for (const auto& [name, value] : kKeepalive) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMsMin);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.SetResourceQuota(grpc::ResourceQuota("connections").Resize(kConnectionBytesMax));
  // Two trackers on one port would share the agents at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

namespace {

// gRPC's text for a connection that could not be made, as what to do about it. A text that is not known stays as it is.
std::string ConnectionProblem(const std::string& text) {
  struct Known {
    std::string_view part;  // of gRPC's text
    const char* meaning;
  };
  constexpr Known kKnown[] = {
      {"Connection refused", "nothing listens there; start hone-tracker, or give another address"},
      {"No such file or directory", "nothing listens there; start hone-tracker or hone up, or give another address"},
      {"Domain name not found", "there is no host of that name; correct the name in the address"},
      {"DNS resolution failed", "the host's name could not be looked up; check the name and the network"},
      {"is not in peer certificate",
       "its certificate is for other names of that host; use a name with which the "
       "farm was made (--tracker and --host of hone pki init)"},
      {"certificate verify failed",
       "its certificate cannot be verified: it is of another farm than this identity, or has expired, or a clock is "
       "wrong; give the tracker of the farm, or the identity of this one with --identity DIR"},
      {"No route to host", "there is no route to that host; check the address and the network"},
      {"Network is unreachable", "the network of that host cannot be reached; check the address and the network"},
  };
  // Other texts are the tracker's own, which may tell of a file that does not exist.
  const bool is_grpcs =
      text.starts_with("failed to connect to all addresses") || text.starts_with("DNS resolution failed");
  for (const Known& known : kKnown) {
    if (is_grpcs && text.find(known.part) != std::string::npos) return known.meaning;
  }
  return text;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  // The two enumerations have the same values.
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message()));
}

absl::Status FromGrpc(const grpc::Status& status) {
  std::string text = status.error_message();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) text = ConnectionProblem(text);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && text == "Deadline Exceeded") {
    text = "it did not answer in time; is the address right, and does the network let the connection through?";
  }
  // gRPC gives no text for a method that the other side does not have.
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && text.empty()) {
    text = "the server does not support this call; it may be an older version, or have the call turned off";
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
}

}  // namespace hone

// SPDX-License-Identifier: Apache-2.0
#include "pki/join.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <string_view>

#include "absl/time/clock.h"
#include "base/status.h"
#include "hone/v1/identity.grpc.pb.h"
#include "proto/convert.h"

namespace hone::pki {
namespace {

constexpr int kAnswerSecondsMax = 15;
constexpr unsigned char kHttp2[] = {2, 'h', '2'};  // the ALPN protocol of gRPC

std::chrono::system_clock::time_point Deadline() {
  return std::chrono::system_clock::now() + std::chrono::seconds(kAnswerSecondsMax);
}

std::string PemOf(X509* certificate) {
  const std::unique_ptr<BIO, void (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free_all);
  HONE_CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// A TLS connection that verifies nothing. It is used only to read certificates; no data is sent over it.
class Handshake {
 public:
  explicit Handshake(const std::string& address)
      : context_(SSL_CTX_new(TLS_client_method())), connection_(BIO_new_ssl_connect(context_)) {
    BIO_get_ssl(connection_, &ssl_);
    SSL_set_verify(ssl_, SSL_VERIFY_NONE, nullptr);
    SSL_set_alpn_protos(ssl_, kHttp2, sizeof(kHttp2));
    BIO_set_conn_hostname(connection_, address.c_str());
  }
  ~Handshake() {
    BIO_free_all(connection_);
    SSL_CTX_free(context_);
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  bool Connect() {
    BIO* socket = BIO_next(connection_);
    if (BIO_do_connect_retry(socket, kAnswerSecondsMax, 50) != 1) return false;
    int descriptor = -1;
    BIO_get_fd(socket, &descriptor);
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);  // BIO_do_connect_retry set it
    const timeval patience{kAnswerSecondsMax, 0};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    connected_ = true;
    return BIO_do_handshake(connection_) == 1;
  }
  bool connected() const { return connected_; }
  STACK_OF(X509) * chain() const { return SSL_get_peer_cert_chain(ssl_); }

 private:
  SSL_CTX* context_;
  BIO* connection_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
};

// The text of identity.pem: key and certificate.
absl::StatusOr<std::string> Assemble(const std::string& key, const std::string& certificate) {
  HONE_RETURN_IF_ERROR(Annotate(ReadCertificate(certificate).status(), "the tracker's answer"));
  return key + certificate;
}

absl::StatusOr<v1::JoinResponse> CallJoin(const std::string& authority, const JoinOptions& options,
                                          const std::string& key) {
  HONE_ASSIGN_OR_RETURN(const auto channel, OpenAnonymousChannel(options.settings.tracker, authority));
  // The connection may be retried, but the token must not be sent twice. If there is no connection, the call below
  // fails with the reason.
  channel->WaitForConnected(Deadline());
  v1::JoinRequest request;
  HONE_ASSIGN_OR_RETURN(*request.mutable_certificate_request(), MakeRequest(key));
  request.set_role(std::string(Name(options.token.role)));
  request.set_name(options.name);
  request.set_host_name(options.host_name);
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  context.AddMetadata(kTokenMetadata, options.token.secret);
  v1::JoinResponse response;
  const grpc::Status status = v1::JoinService::NewStub(channel)->Join(&context, request, &response);
  if (!status.ok()) return Annotate(FromGrpc(status), "tracker " + options.settings.tracker);
  return response;
}

// The error for a folder that has an identity. It says which one and how to go on, because a second name for one
// machine is seldom intended.
absl::Status AlreadyJoinedError(const std::filesystem::path& folder) {
  const auto identity = ReadIdentity(folder);
  const auto settings = ReadSettings(folder);
  const std::string name = identity.ok() ? identity->name : "";
  const std::string tracker = settings.ok() ? settings->tracker : "";
  return absl::AlreadyExistsError(fmt::format(
      "this machine has joined already{}{}: {} has an identity. Nothing was changed, and the token is still valid. To "
      "change its labels, edit the lines 'label LABEL' in {}. To join again, ask an admin to free the name (hone "
      "identity revoke {}), then remove the folder. To join a second farm, give another folder with --identity DIR",
      name.empty() ? "" : fmt::format(" as '{}'", name), tracker.empty() ? "" : " at " + tracker, folder.string(),
      (folder / "settings").string(), name.empty() ? "NAME" : name));
}

}  // namespace

absl::StatusOr<std::string> FetchAuthority(const std::string& address, const std::string& fingerprint) {
  Handshake handshake(address);
  const bool complete = handshake.Connect();
  ERR_clear_error();
  if (!handshake.connected()) {
    return absl::UnavailableError(fmt::format("no server answers at {}; check the tracker's HOST:PORT", address));
  }
  STACK_OF(X509)* chain = complete ? handshake.chain() : nullptr;
  std::string early;  // why a certificate of the chain is not valid yet; "": all are
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    std::string pem = PemOf(sk_X509_value(chain, i));
    const auto facts = ReadCertificate(pem);
    if (!facts.ok()) continue;
    if (early.empty()) early = ClockBehindWarning(*facts, absl::Now());
    if (facts->fingerprint != fingerprint) continue;
    if (!early.empty()) return absl::FailedPreconditionError(early);
    return pem;
  }
  return absl::UnauthenticatedError(
      fmt::format("the server at {} does not belong to the farm of the token, so the token was not sent; check the "
                  "address, and that the token comes from this farm",
                  address));
}

absl::StatusOr<std::string> Join(const std::filesystem::path& folder, const JoinOptions& options) {
  HONE_RETURN_IF_ERROR(MakeFolder(folder));
  const TlsFiles files = FilesIn(folder);
  if (std::filesystem::exists(files.identity)) return AlreadyJoinedError(folder);
  HONE_ASSIGN_OR_RETURN(const std::string authority,
                        FetchAuthority(options.settings.tracker, options.token.fingerprint));
  const std::string key = MakeKey();
  // The folder is checked first, so that a folder that cannot be written to does not use up the token.
  HONE_RETURN_IF_ERROR(WriteFile(files.authority, authority));
  HONE_RETURN_IF_ERROR(WriteSettings(folder, options.settings));
  HONE_ASSIGN_OR_RETURN(const v1::JoinResponse response, CallJoin(authority, options, key));
  HONE_ASSIGN_OR_RETURN(const std::string identity, Assemble(key, response.certificate()));
  HONE_RETURN_IF_ERROR(WriteFile(files.identity, identity));
  return response.name();
}

absl::StatusOr<absl::Time> TrackerTime(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1::WhoAmIResponse response;
  HONE_RETURN_IF_ERROR(FromGrpc(v1::JoinService::NewStub(channel)->WhoAmI(&context, v1::WhoAmIRequest(), &response)));
  return FromProto(response.time());
}

absl::Status Renew(const std::shared_ptr<grpc::Channel>& channel, const std::filesystem::path& folder) {
  const std::string key = MakeKey();
  v1::RenewRequest request;
  HONE_ASSIGN_OR_RETURN(*request.mutable_certificate_request(), MakeRequest(key));
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1::RenewResponse response;
  HONE_RETURN_IF_ERROR(FromGrpc(v1::JoinService::NewStub(channel)->Renew(&context, request, &response)));
  HONE_ASSIGN_OR_RETURN(const std::string identity, Assemble(key, response.certificate()));
  return WriteFile(FilesIn(folder).identity, identity);
}

}  // namespace hone::pki

// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/http_front_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "pki/certificates.h"
#include "pki/identity_folder.h"
#include "tracker/http/parse.h"

namespace hone::tracker {
namespace {

const std::vector<std::string>& Loopback() {
  static const std::vector<std::string> names = {"127.0.0.1", "::1", "localhost"};
  return names;
}

// The host names under which browsers reach the server. kInvalidArgument: without certificates it may listen only on
// loopback.
absl::StatusOr<std::vector<std::string>> HostsOf(const HttpFrontEndOptions& options) {
  if (options.pki.empty()) {
    const std::string host = HostIn(options.listen);
    if (std::find(Loopback().begin(), Loopback().end(), host) != Loopback().end()) return Loopback();
    return absl::InvalidArgumentError(fmt::format(
        "--http {}: without certificates only this machine may connect; give 127.0.0.1:PORT, or let the farm listen on "
        "HOST:PORT with --pki DIR, whose certificates HTTPS then uses",
        options.listen));
  }
  HONE_ASSIGN_OR_RETURN(const std::string pem, pki::ReadFile(pki::FilesIn(options.pki).identity));
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> hosts, pki::CertificateHosts(pem));
  for (std::string& host : hosts) host = HostIn(host.find(':') == std::string::npos ? host : "[" + host + "]");
  return hosts;
}

// The address with a host that is in the certificate, because browsers accept no other over TLS.
std::string AddressFor(const std::string& address, const std::vector<std::string>& hosts) {
  if (hosts.empty() || std::find(hosts.begin(), hosts.end(), HostIn(address)) != hosts.end()) return address;
  const bool is_local = std::find(Loopback().begin(), Loopback().end(), HostIn(address)) != Loopback().end();
  const auto local = std::find(hosts.begin(), hosts.end(), "localhost");
  const std::string& host = is_local && local != hosts.end() ? *local : hosts.front();
  const std::string port = address.substr(address.rfind(':'));
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + port;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpFrontEnd>> HttpFrontEnd::Start(const HttpFrontEndOptions& options, Shell* shell,
                                                                  const records::Store* store, files::FileStore* files,
                                                                  const FileRights* rights,
                                                                  const Membership* membership, Gate* gate) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, HostsOf(options));
  std::string secret = options.secret;
  if (membership != nullptr) {
    HONE_ASSIGN_OR_RETURN(const std::string authority, membership->Fingerprint());
    secret += authority;  // a new authority makes a new farm, in which old sessions are invalid
  }
  std::unique_ptr<HttpFrontEnd> front_end(new HttpFrontEnd());
  front_end->visitors_ = std::make_unique<Visitors>(membership, gate, secret, hosts);
  front_end->events_ = std::make_unique<EventFeed>(shell, store->path());
  front_end->site_ = std::make_unique<Site>(ApiContext{
      shell, store, front_end->visitors_.get(), front_end->events_.get(), &front_end->pages_, files, rights,
      options.not_before, options.tracker.starts_with("unix:") ? options.tracker : AddressFor(options.tracker, hosts)});
  HttpServer::Options server{
      .listen = options.listen,
      .client_key = [visitors = front_end->visitors_.get()](
                        const HttpRequest& request) { return visitors->ClientKeyOf(request); },
      .body_limit = [site = front_end->site_.get()](const HttpRequest& head) { return site->BodyLimit(head); }};
  if (membership != nullptr) server.tls = pki::FilesIn(options.pki);
  HONE_ASSIGN_OR_RETURN(front_end->server_,
                        HttpServer::Start(server, [site = front_end->site_.get()](const HttpRequest& request) {
                          return site->Answer(request);
                        }));
  front_end->events_->Start();
  front_end->url_ = membership != nullptr
                        ? fmt::format("https://{}/", AddressFor(front_end->server_->address(), hosts))
                        : fmt::format("http://{}/#key={}", front_end->server_->address(), front_end->visitors_->key());
  if (!options.url_file.empty()) HONE_RETURN_IF_ERROR(pki::WriteFile(options.url_file, front_end->url_ + "\n"));
  return front_end;
}

}  // namespace hone::tracker

// SPDX-License-Identifier: Apache-2.0
// The HTTP side of the tracker as a whole: the server, its visitors and its site, put together.
#ifndef HONE_TRACKER_HTTP_HTTP_FRONT_END_H_
#define HONE_TRACKER_HTTP_HTTP_FRONT_END_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/http/events.h"
#include "tracker/http/server.h"
#include "tracker/http/site.h"
#include "tracker/http/visitors.h"

namespace hone::tracker {

struct HttpFrontEndOptions {
  std::string listen;                            // HOST:PORT
  std::filesystem::path pki;                     // folder of the tracker's certificates; empty: plain HTTP, on loopback
  std::filesystem::path url_file;                // receives url(), closed to other users; empty: none
  std::string secret;                            // as for Visitors
  absl::Time not_before = absl::InfinitePast();  // as HealthFacts::not_before
  std::string tracker;                           // the address of the gRPC side: unix:/PATH or HOST:PORT
};

class HttpFrontEnd {
 public:
  // Starts serving. The arguments must outlive it. membership, gate: null without certificates. kInvalidArgument: plain
  // HTTP on an address that other machines reach; other errors as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpFrontEnd>> Start(const HttpFrontEndOptions& options, Shell* shell,
                                                             const records::Store* store, files::FileStore* files,
                                                             const FileRights* rights, const Membership* membership,
                                                             Gate* gate);

  // The URL for browsers: "https://HOST:PORT/", where HOST is a name in its certificate; or
  // "http://127.0.0.1:PORT/#key=KEY", which is secret.
  const std::string& url() const { return url_; }
  void Stop() { server_->Stop(); }

 private:
  HttpFrontEnd() = default;

  std::unique_ptr<Visitors> visitors_;
  const Pages pages_{DashboardFiles()};
  std::unique_ptr<EventFeed> events_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<HttpServer> server_;  // destroyed before the members above, which its handlers use
  std::string url_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_HTTP_FRONT_END_H_

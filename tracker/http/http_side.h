// SPDX-License-Identifier: Apache-2.0
// The tracker's HTTP side as a whole: joins the server, who may come, and what is answered.
#ifndef HONE_TRACKER_HTTP_HTTP_SIDE_H_
#define HONE_TRACKER_HTTP_HTTP_SIDE_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/http/events.h"
#include "tracker/http/server.h"
#include "tracker/http/site.h"
#include "tracker/http/visitors.h"

namespace hone::tracker {

struct HttpSideOptions {
  std::string listen;                            // HOST:PORT
  std::filesystem::path pki;                     // folder of the tracker's certificates; empty: plain HTTP, on loopback
  std::filesystem::path url_file;                // receives url(), closed to other users; empty: none
  std::string secret;                            // as Visitors has it
  absl::Time not_before = absl::InfinitePast();  // as HealthFacts has it
};

class HttpSide {
 public:
  // What it is given must outlive it; membership and gate: null without certificates.
  // kInvalidArgument: plain HTTP on an address that others reach; else as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpSide>> Start(const HttpSideOptions& options, Shell* shell,
                                                         const records::Store* store, const Membership* membership,
                                                         Gate* gate);

  // Where a browser finds it: "https://HOST:PORT/", by a name of its certificate, or "http://127.0.0.1:PORT/#key=KEY",
  // which is a secret.
  const std::string& url() const { return url_; }
  void Stop() { server_->Stop(); }

 private:
  HttpSide() = default;

  std::unique_ptr<Visitors> visitors_;
  const Pages pages_{DashboardFiles()};
  std::unique_ptr<EventFeed> events_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<HttpServer> server_;  // ends first
  std::string url_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_HTTP_SIDE_H_

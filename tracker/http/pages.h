// SPDX-License-Identifier: Apache-2.0
// Serves the files of the dashboard, which are embedded in the program (cmake/EmbedFolder.cmake).
//
// No disk is read, so a path cannot escape from a folder. A path without a file is a view of the page and gets
// index.html, whose script shows the view. The files hold no secrets and need no role. Safe from any thread.
#ifndef HONE_TRACKER_HTTP_PAGES_H_
#define HONE_TRACKER_HTTP_PAGES_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"
#include "tracker/http/exchange.h"
#include "tracker/http/parse.h"

namespace hone {

// The files of dashboard/dist, each also in compressed form.
const std::vector<EmbeddedFile>& DashboardFiles();

}  // namespace hone

namespace hone::tracker {

class Pages {
 public:
  // The files must outlive it.
  explicit Pages(const std::vector<EmbeddedFile>& files);

  // The response for a path; nullopt: it names neither a file nor a view. A view is every path that is not below "/api"
  // and whose last segment has no '.'.
  std::optional<HttpResponse> Find(const HttpRequest& request, const Target& target) const;

 private:
  struct Page {
    std::string_view bytes, compressed;  // compressed: empty where there is no such form
    std::string tag;                     // the ETag
  };
  static HttpResponse Answer(const HttpRequest& request, const std::string& name, const Page& page);

  std::map<std::string, Page, std::less<>> pages_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_PAGES_H_

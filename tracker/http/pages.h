// SPDX-License-Identifier: Apache-2.0
// The files of the dashboard, which are inside the program (cmake/EmbedFolder.cmake), as answers.
//
// Nothing is read from a disk, so there is no path to leave. An address without a file of its own is one of the page's
// views, and gets index.html, which knows it. They hold no secret: anybody may have them. Safe from any thread.
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

// dashboard/dist, each file also compressed.
const std::vector<EmbeddedFile>& DashboardFiles();

}  // namespace hone

namespace hone::tracker {

class Pages {
 public:
  // The files must outlive it.
  explicit Pages(const std::vector<EmbeddedFile>& files);

  // nullopt: there is no such file, and no view of that address.
  std::optional<HttpResponse> Find(const HttpRequest& request, const Target& target) const;

 private:
  struct Page {
    std::string_view bytes, compressed;  // the second empty where there is none
    std::string tag;
  };
  static HttpResponse Answer(const HttpRequest& request, const std::string& name, const Page& page);

  std::map<std::string, Page, std::less<>> pages_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_PAGES_H_

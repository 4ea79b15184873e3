// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/digest.h"

namespace hone::tracker {
namespace {

constexpr std::string_view kCompressed = ".gz";
constexpr char kIndex[] = "index.html";

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".json", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".txt", "text/plain; charset=utf-8"},
};

std::string_view TypeOf(std::string_view name) {
  for (const auto& [end, type] : kTypes) {
    if (name.ends_with(end)) return type;
  }
  return "application/octet-stream";
}

// Whether Accept-Encoding allows gzip: "gzip, br;q=0.8" does, "gzip;q=0" does not.
bool TakesCompressed(std::string_view accepted) {
  const size_t at = accepted.find("gzip");
  if (at == std::string_view::npos) return false;
  const std::string_view rest = accepted.substr(at, accepted.find(',', at) - at);
  return rest.find("q=0") == std::string_view::npos || rest.find("q=0.") != std::string_view::npos;
}

}  // namespace

Pages::Pages(const std::vector<EmbeddedFile>& files) {
  for (const EmbeddedFile& file : files) {
    if (file.name.ends_with(kCompressed)) continue;
    pages_[std::string(file.name)] = {file.bytes, "", fmt::format("\"{:.16}\"", Sha256Hex(file.bytes))};
  }
  for (const EmbeddedFile& file : files) {
    if (!file.name.ends_with(kCompressed)) continue;
    const auto page = pages_.find(file.name.substr(0, file.name.size() - kCompressed.size()));
    if (page != pages_.end()) page->second.compressed = file.bytes;
  }
}

std::optional<HttpResponse> Pages::Find(const HttpRequest& request, const Target& target) const {
  const std::string name = fmt::format("{}", fmt::join(target.path, "/"));
  if (const auto page = pages_.find(name); page != pages_.end()) return Answer(request, name, page->second);
  const bool view =
      target.path.empty() || (target.path.front() != "api" && target.path.back().find('.') == std::string::npos);
  const auto index = pages_.find(kIndex);
  if (!view || index == pages_.end()) return std::nullopt;
  return Answer(request, kIndex, index->second);
}

HttpResponse Pages::Answer(const HttpRequest& request, const std::string& name, const Page& page) {
  HttpResponse response{.type = std::string(TypeOf(name))};
  response.headers.emplace_back("Cache-Control", "no-cache");  // a file may change under the same name
  response.headers.emplace_back("ETag", page.tag);
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (request.Header("if-none-match") == page.tag) {
    response.status = 304;
    return response;
  }
  const bool compressed = !page.compressed.empty() && TakesCompressed(request.Header("accept-encoding"));
  if (compressed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = std::string(compressed ? page.compressed : page.bytes);
  return response;
}

}  // namespace hone::tracker

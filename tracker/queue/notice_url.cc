// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/notice_url.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "base/status.h"

namespace hone::tracker {
namespace {

constexpr size_t kUrlBytesMax = 2000;

absl::Status Malformed(const std::string& url) {
  return absl::InvalidArgumentError(fmt::format(
      "--notify {}: write https://HOST[:PORT]/PATH, without a user name, spaces or '..'", url.substr(0, 200)));
}

// Whether the URL begins with the prefix, and the prefix ends where a path segment ends.
bool HasPrefix(std::string_view url, const std::string& prefix) {
  if (!url.starts_with(prefix)) return false;
  if (prefix.ends_with('/')) return true;
  const std::string_view rest = url.substr(prefix.size());
  return rest.empty() || rest.front() == '/' || rest.front() == '?';
}

}  // namespace

absl::StatusOr<NoticeUrl> ParseNoticeUrl(const std::string& url) {
  const bool odd = std::any_of(url.begin(), url.end(), [](unsigned char c) { return c <= ' ' || c >= 0x7f; });
  const std::string small = absl::AsciiStrToLower(url);
  if (odd || url.size() > kUrlBytesMax) return Malformed(url);
  for (const char* word : {"..", "\\", "@", "#", "%2e", "%2f", "%5c"}) {
    if (small.find(word) != std::string::npos) return Malformed(url);
  }
  NoticeUrl parsed;
  parsed.tls = url.starts_with("https://");
  if (!parsed.tls && !url.starts_with("http://")) return Malformed(url);
  const std::string rest = url.substr(parsed.tls ? 8 : 7);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  parsed.target = rest.substr(end);
  if (!parsed.target.starts_with('/')) parsed.target = "/" + parsed.target;
  const size_t colon = rest.substr(0, end).rfind(':');
  const bool has_port = colon != std::string::npos && rest[end - 1] != ']';  // not one within [::1]
  parsed.host = rest.substr(0, has_port ? colon : end);
  parsed.port = has_port ? rest.substr(colon + 1, end - colon - 1) : parsed.tls ? "443" : "80";
  const bool digits =
      std::all_of(parsed.port.begin(), parsed.port.end(), [](char c) { return absl::ascii_isdigit(c); });
  if (parsed.host.empty() || parsed.port.empty() || !digits) return Malformed(url);
  return parsed;
}

absl::Status CheckNoticeUrl(const std::string& url, const std::vector<std::string>& allowed) {
  HONE_RETURN_IF_ERROR(ParseNoticeUrl(url).status());
  for (const std::string& prefix : allowed) {
    if (HasPrefix(url, prefix)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      fmt::format("--notify {}: this farm sends no notices to this address; {}. The farm's owner can allow more with "
                  "hone-tracker --notify-allow PREFIX",
                  url, allowed.empty() ? "it allows none" : fmt::format("it allows {}", fmt::join(allowed, ", "))));
}

}  // namespace hone::tracker

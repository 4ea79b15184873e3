// SPDX-License-Identifier: Apache-2.0
// What a stranger writes into the head of an HTTP request: the target, cookies, hosts. What is taken is safe to use.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tracker/http/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto target = hone::tracker::ParseTarget(text);
  if (target.ok()) {
    for (const std::string& segment : target->path) {
      const bool safe = !segment.empty() && segment != "." && segment != ".." &&
                        segment.find_first_of(std::string_view("/\\\r\n\0", 5)) == std::string::npos;
      if (!safe) std::abort();
    }
  }
  const std::string_view cookie = hone::tracker::CookieIn(text, "__Host-hone");
  if (cookie.find(';') != std::string_view::npos) std::abort();
  const std::string host = hone::tracker::HostIn(text);
  if (host.find_first_of("/@[] ") != std::string::npos) std::abort();
  return 0;
}

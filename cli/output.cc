#include "cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace hone::cli {

absl::Status PrintText(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

absl::Status PrintJson(const nlohmann::ordered_json& document) {
  // Names come from models and files: what is not UTF-8 is replaced, not thrown at the user.
  return PrintText(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace hone::cli

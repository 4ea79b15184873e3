// SPDX-License-Identifier: Apache-2.0
// The few variables of this process's environment that a child process gets which runs untrusted code or compiles
// models of other users. All other variables stay here, because some are secrets, such as tokens and passwords.
// Start with ShortEnvironment.
#ifndef HONE_BASE_SHORT_ENVIRONMENT_H_
#define HONE_BASE_SHORT_ENVIRONMENT_H_

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace hone {

// Variables that every such child gets: where programs, libraries and temporary files are, the language, and the
// options of sanitizers.
inline constexpr std::string_view kPlainVariables[] = {
    "PATH", "LD_LIBRARY_PATH", "TMPDIR",       "LANG",         "LC_ALL",
    "TZ",   "ASAN_OPTIONS",    "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};

// kPlainVariables and those of `more`, as "NAME=value" with a final null, for execve. An entry that ends in '_' is a
// prefix of names. The pointers lead into this process's own environment.
inline std::vector<const char*> ShortEnvironment(std::span<const std::string_view> more) {
  const auto is_passed_on = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    const auto fits = [&](std::string_view known) {
      return known.ends_with('_') ? name.starts_with(known) : name == known;
    };
    return std::ranges::any_of(kPlainVariables, fits) || std::ranges::any_of(more, fits);
  };
  std::vector<const char*> passed;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (is_passed_on(*variable)) passed.push_back(*variable);
  }
  passed.push_back(nullptr);
  return passed;
}

}  // namespace hone

#endif  // HONE_BASE_SHORT_ENVIRONMENT_H_

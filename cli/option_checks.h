// SPDX-License-Identifier: Apache-2.0
// Checks of what options are given, for CLI11's check(), which takes a text and returns what is wrong with it. They are
// for what CLI11 itself lets through.
#ifndef HONE_CLI_OPTION_CHECKS_H_
#define HONE_CLI_OPTION_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace hone::cli {

// For options that count as not given where they are empty: an empty text is mostly a variable that is not set, and
// something else than what was meant would be done.
std::string NotEmpty(const std::string& text);

// For a file that is to be written where - is not standard output, as it is elsewhere.
std::string NotDash(const std::string& text);

// A whole number from `least` to `most`, in decimal digits. CLI11 makes the largest number of -1 and of what is too
// large, and takes 010 for 8.
std::function<std::string(const std::string&)> WholeUpTo(uint64_t most, uint64_t least = 0);

// For numbers with a range, of which nan is never outside.
std::string NoNan(const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLI_OPTION_CHECKS_H_

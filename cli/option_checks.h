// SPDX-License-Identifier: Apache-2.0
// Checks of option values for CLI11's check(): each takes the value and returns the problem, or "" if there is none.
// They reject values that CLI11 itself accepts. Also options of one meaning in several commands.
#ifndef HONE_CLI_OPTION_CHECKS_H_
#define HONE_CLI_OPTION_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace hone::cli {

// Rejects the empty text. An empty value usually comes from an unset shell variable, and the program would treat the
// option as not given.
std::string NotEmpty(const std::string& text);

// Rejects "-" as the name of an output file, for options where it does not mean standard output.
std::string NotDash(const std::string& text);

// Accepts a whole number from `min` to `max` in decimal digits. CLI11 itself turns -1 and numbers that are too large
// into the largest number, and reads 010 as 8.
std::function<std::string(const std::string&)> IntegerInRange(uint64_t max, uint64_t min = 0);

// Rejects nan, which passes every check of a range.
std::string NoNan(const std::string& text);

// For CLI::Option::transform. DurationAsSeconds turns "10m" into "600", and WithoutPercentSign "3%" into "3"; both
// leave every other text as it is.
std::string DurationAsSeconds(std::string& text);
std::string WithoutPercentSign(std::string& text);

// What --fallback does where a package is run.
inline constexpr char kAllowFallbackText[] =
    "let ONNX Runtime compute the parts that the package leaves to it; its library is loaded into this process";

// Adds --fallback, whose only value is "onnxruntime". text: what it does.
void AddFallbackTo(CLI::App* command, std::string& fallback, const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLI_OPTION_CHECKS_H_

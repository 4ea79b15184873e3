// SPDX-License-Identifier: Apache-2.0
// Internal to compiler/target: splits a target's text into word and options, and parses numeric options.
#ifndef HONE_COMPILER_TARGET_TARGET_TEXT_H_
#define HONE_COMPILER_TARGET_TARGET_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/target/target.h"

namespace hone::target {

// A text such as `arm64 -threads=2`: a word and options. The views refer to the original text, which must outlive them.
struct TargetText {
  struct Option {
    std::string_view name, value;  // "-threads", "2"
  };
  std::string_view word = "cpu";
  std::vector<Option> options;

  // Returns the last option of this name, or nullptr.
  const Option* Find(std::string_view name) const;
};

TargetText Split(std::string_view text);

// A numeric option (positive) and the field that it sets: exactly one of `small` and `large`. The name has its dash:
// "-threads".
struct Number {
  std::string_view name;
  int* small = nullptr;
  int64_t* large = nullptr;
};

// Sets in `target` every numeric option of the text. `words` are the kind's other options, in user notation: "-mcpu=",
// "-tf32". InvalidArgument for an option that is neither, or a value that is not a positive number.
absl::Status ParseNumbers(const TargetText& text, std::vector<std::string> words, Target& target);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TARGET_TEXT_H_

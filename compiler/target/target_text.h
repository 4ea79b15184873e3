// SPDX-License-Identifier: Apache-2.0
// Inside compiler/target: the text of a target, taken apart, and its options that are numbers.
#ifndef HONE_COMPILER_TARGET_TARGET_TEXT_H_
#define HONE_COMPILER_TARGET_TARGET_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/target/target.h"

namespace hone::target {

// `arm64 -threads=2`: a word, and options. Refers to the text that it was made of.
struct TargetText {
  struct Option {
    std::string_view name, value;  // "-threads", "2"
  };
  std::string_view word = "cpu";
  std::vector<Option> options;

  // The last one of this name; null if there is none.
  const Option* Find(std::string_view name) const;
};

TargetText Split(std::string_view text);

// An option that is a positive number, and where it goes: one of the two.
struct Number {
  std::string_view name;
  int* small = nullptr;
  int64_t* large = nullptr;
};

// Sets in `target` every number that the text has. `words` are the options of this kind that are no numbers, as people
// write them: "-mcpu=", "-tf32". InvalidArgument for an option that is neither, or a value that is no positive number.
absl::Status ParseNumbers(const TargetText& text, std::vector<std::string> words, Target& target);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TARGET_TEXT_H_

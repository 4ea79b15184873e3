// SPDX-License-Identifier: Apache-2.0
// The configuration file of a program: lines KEY = VALUE, the keys being its options without their dashes.
//
//   # a comment
//   listen = "0.0.0.0:9190"
//   keep-jobs = 1000
//   label = ["board=rpi4", "room=lab"]
//
// A value is a word without spaces, text in quotes, or a list of these in brackets, which may go over several lines. A
// part of TOML: no sections, no nesting. What is not understood is an error with its line, never passed over: a setting
// that somebody believes to be in force must be. Pure: config_option.h joins it with a command line.
#ifndef HONE_BASE_CONFIG_FILE_H_
#define HONE_BASE_CONFIG_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // one, or those of a list
  int line = 0;                     // of the key, the first is 1
};

// name: of the file, for messages. known: the keys that there are.
// kInvalidArgument: "NAME:LINE: what is wrong", for a key that there is not with the one that is nearest to it.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(std::string_view name, std::string_view text,
                                                     const std::vector<std::string>& known);

}  // namespace hone

#endif  // HONE_BASE_CONFIG_FILE_H_

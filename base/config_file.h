// SPDX-License-Identifier: Apache-2.0
// The configuration file of a program: lines KEY = VALUE. The keys are the program's options without their dashes.
//
//   # a comment
//   listen = "0.0.0.0:9190"
//   keep-jobs = 1000
//   label = ["board=rpi4", "room=lab"]
//
// A value is a word without spaces, text in quotes, or a list of these in brackets. A list may span several lines. The
// format is a subset of TOML, without sections and nesting. Every line that cannot be parsed is an error with its line
// number, because a setting that is silently ignored would mislead its author. ParseConfig only parses text;
// config_option.h connects it to a command line.
#ifndef HONE_BASE_CONFIG_FILE_H_
#define HONE_BASE_CONFIG_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // one value, or the values of a list
  int line = 0;                     // line of the key, counted from 1
};

// name: the file's name, for messages. known: all valid keys. A key may appear only once.
// kInvalidArgument: "NAME:LINE: problem"; for an unknown key the message suggests the most similar known one.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(std::string_view name, std::string_view text,
                                                     const std::vector<std::string>& known);

}  // namespace hone

#endif  // HONE_BASE_CONFIG_FILE_H_

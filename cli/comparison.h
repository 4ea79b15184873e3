// SPDX-License-Identifier: Apache-2.0
// What `hone compare` prints: a table of packages on devices, as text and JSON.
//
// Pure. Not here: the runs (compare_command.cc), and the reports of runs that were asked for alone (device_reports.h).
// Start at ComparisonToText.
#ifndef HONE_CLI_COMPARISON_H_
#define HONE_CLI_COMPARISON_H_

#include <string>
#include <string_view>
#include <vector>

#include "hone/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// One device of a comparison.
struct ComparedDevice {
  std::string name;                   // "board/cpu"
  std::vector<std::string> packages;  // names of the files, in the order of the run
  v1::Job job;                        // with the reports if it succeeded; without an id: none was submitted
  std::string reason;                 // why there are no reports; empty if there are

  bool HasAnswered() const { return job.state() == v1::JOB_STATE_SUCCEEDED; }
};

// The devices that have not answered, as "a/cpu, b/cpu"; "" if all have.
std::string NamesOfMissing(const std::vector<ComparedDevice>& devices);

// A document with `rows`: one for each device and package (docs/COMMANDS.md).
nlohmann::ordered_json ComparisonToJson(const std::vector<ComparedDevice>& devices);

// A table with the same rows. The fastest device of each package is marked. A column that no device fills is left out;
// lines below the table say why a share of the roofline is missing.
std::string ComparisonToText(const std::vector<ComparedDevice>& devices);

}  // namespace hone::cli

#endif  // HONE_CLI_COMPARISON_H_

// SPDX-License-Identifier: Apache-2.0
// `hone records best`, `query` and `stats`: show records as text for users, and as JSON or CSV for programs.
#ifndef HONE_CLI_RECORDS_SHOW_H_
#define HONE_CLI_RECORDS_SHOW_H_

#include <string>

#include "absl/status/status.h"
#include "cli/records_options.h"
#include "nlohmann/json.hpp"
#include "records/source.h"

namespace hone::cli {

absl::Status RunBest(const RecordsOptions& options);
absl::Status RunQuery(const RecordsOptions& options);
absl::Status RunStats(const RecordsOptions& options);

// A winning record as a JSON object, and as lines of text.
nlohmann::ordered_json BestFields(const records::BestRecord& best);
std::string BestText(const records::BestRecord& best);

// "2027-01-31T07:00:00Z"
std::string Utc(records::Instant when);
// "0.1234 ms confirmed", or "crashed: the first line of the text".
std::string OutcomeText(const records::Record& record);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_SHOW_H_

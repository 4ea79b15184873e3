// SPDX-License-Identifier: Apache-2.0
// Parses the time of `--until`: a time of day such as "07:00", which means its next occurrence in the local time zone,
// or an instant in RFC 3339 format ("2027-01-31T07:00:00+01:00").
#ifndef HONE_CLI_UNTIL_H_
#define HONE_CLI_UNTIL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::cli {

// Usage error: the text is not a time, or the time has passed. here: the local time zone.
absl::StatusOr<absl::Time> ParseUntil(const std::string& text, absl::Time now, absl::TimeZone here);

}  // namespace hone::cli

#endif  // HONE_CLI_UNTIL_H_

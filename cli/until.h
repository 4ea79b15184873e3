// SPDX-License-Identifier: Apache-2.0
// The time of `--until`: "07:00", the next time that a clock on the wall here shows it, or an instant as RFC 3339
// writes it ("2027-01-31T07:00:00+01:00").
#ifndef HONE_CLI_UNTIL_H_
#define HONE_CLI_UNTIL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::cli {

// A usage error for what is no time, or is over.
absl::StatusOr<absl::Time> ParseUntil(const std::string& text, absl::Time now, absl::TimeZone here);

}  // namespace hone::cli

#endif  // HONE_CLI_UNTIL_H_

// SPDX-License-Identifier: Apache-2.0
// Shell commands that a user copies from a page. They contain text from records that other users may have written, so
// all of it is quoted: no record can end a quotation or start another command.
#ifndef HONE_TRACKER_HTTP_COMMANDS_H_
#define HONE_TRACKER_HTTP_COMMANDS_H_

#include <optional>
#include <string>

#include "records/source.h"

namespace hone::tracker {

// The command that prints the record with `hone`.
std::string QueryCommand(const records::StoredRecord& stored);

// The command that generates the record's kernel as text with `hone-opt`. It contains workload and schedule, so it
// needs neither tracker nor records. The record must have the text of its workload. nullopt: a text has characters
// other than printable ASCII and line ends, or the target has a line end.
std::optional<std::string> KernelCommand(const records::Record& record);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_COMMANDS_H_

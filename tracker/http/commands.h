// SPDX-License-Identifier: Apache-2.0
// Commands that a person copies from a page into a shell. What is in them comes from records, which others may have
// written, so nothing of it can end a quotation or begin a command of its own.
#ifndef HONE_TRACKER_HTTP_COMMANDS_H_
#define HONE_TRACKER_HTTP_COMMANDS_H_

#include <optional>
#include <string>

#include "records/source.h"

namespace hone::tracker {

// Prints the record with `hone`.
std::string QueryCommand(const records::StoredRecord& stored);

// Makes the kernel anew with `hone-opt`, as text, of the workload and the schedule in it: needs neither tracker nor
// records. The record must have its workload's text. nullopt: a text has characters that are for a terminal.
std::optional<std::string> KernelCommand(const records::Record& record);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_COMMANDS_H_

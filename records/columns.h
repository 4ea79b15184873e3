// SPDX-License-Identifier: Apache-2.0
// Reads and checks the values of a record column by column, as kColumns (record.h) describes them. Start at WithValue.
#ifndef HONE_RECORDS_COLUMNS_H_
#define HONE_RECORDS_COLUMNS_H_

#include <type_traits>
#include <variant>

#include "records/record.h"

namespace hone::records {

// Calls use(value) with a reference to the value that the column has in the record; it is const if the record is. Does
// not call it if the column belongs to the other outcome: "drift" in a record of a failure.
template <typename RecordType, typename Use>
void WithValue(RecordType& record, const Column& column, Use use) {
  const auto pick = [&]<typename Value, typename Part>(Value Part::* member) {
    if constexpr (std::is_same_v<Part, Record>) {
      use(record.*member);
    } else if constexpr (std::is_same_v<Part, Key>) {
      use(record.key.*member);
    } else if (auto* part = std::get_if<Part>(&record.outcome)) {
      use(part->*member);
    }
  };
  std::visit(pick, column.member);
}

// Whether the column may hold the number: it is finite and satisfies column.range.
bool InRange(const Column& column, double value);

// Whether the column's value is a member of the struct Wanted (Key, Record, Timing or Failure): PartOf<Timing>(column).
template <typename Wanted>
constexpr bool PartOf(const Column& column) {
  return std::visit([]<typename Value, typename Part>(Value Part::*) { return std::is_same_v<Part, Wanted>; },
                    column.member);
}

}  // namespace hone::records

#endif  // HONE_RECORDS_COLUMNS_H_

// SPDX-License-Identifier: Apache-2.0
// How to go through the values of a record by the description of its columns (kColumns in record.h).
#ifndef HONE_RECORDS_COLUMNS_H_
#define HONE_RECORDS_COLUMNS_H_

#include <type_traits>
#include <variant>

#include "records/record.h"

namespace hone::records {

// Calls use(value) with the column's value of the record, of const type if that is const; does not where the record has
// another outcome than the column speaks of.
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

// Whether a number may stand in the column: finite, and in its range.
bool InRange(const Column& column, double value);

// Whether the column speaks of that part of a record: PartOf<Timing>(column).
template <typename Wanted>
constexpr bool PartOf(const Column& column) {
  return std::visit([]<typename Value, typename Part>(Value Part::*) { return std::is_same_v<Part, Wanted>; },
                    column.member);
}

}  // namespace hone::records

#endif  // HONE_RECORDS_COLUMNS_H_

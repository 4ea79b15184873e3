// SPDX-License-Identifier: Apache-2.0
// A line of records as JSON. What is taken is written and read again as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "records/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone::records;  // NOLINT: one function
  const auto record = RecordFromJson({reinterpret_cast<const char*>(data), size});
  if (!record.ok()) return 0;
  const std::string line = RecordToJson(*record);
  const auto again = RecordFromJson(line);
  HONE_CHECK(again.ok());
  HONE_CHECK(RecordToJson(*again) == line);
  return 0;
}

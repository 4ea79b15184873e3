// SPDX-License-Identifier: Apache-2.0
// The two lists that say what the project claims: supported.txt and unsupported.txt, beside this file.
//
// supported.txt has one case per line; unsupported.txt has "case: reason". Lines that start with '#' are comments.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_
#define HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::conformance {

// The cases of a list, in the file's order, without their reasons.
absl::StatusOr<std::vector<std::string>> ReadCaseList(const std::string& path);

// What the second list says of a case that ends like this, in one line; "" where it passes.
std::string ReasonOf(const absl::Status& result);
// The cases of a list with their reasons, "" where it gives none.
absl::StatusOr<std::map<std::string, std::string>> ReadReasons(const std::string& path);

// Writes both lists into `folder`. The message of an OK status is empty; any other is the reason.
absl::Status WriteCaseLists(const std::string& folder, const std::map<std::string, absl::Status>& results);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_

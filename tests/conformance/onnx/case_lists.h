// SPDX-License-Identifier: Apache-2.0
// The two lists of conformance cases, supported.txt and unsupported.txt, in this folder. They state which cases pass.
//
// explanations.txt, if a folder has it, is written by hand: "prefix of cases: text". The text stands as a comment
// before the cases in unsupported.txt whose reason alone does not say why they cannot pass. supported.txt has one case
// per line; unsupported.txt has "case: reason". Lines that start with '#' are comments.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_
#define HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::conformance {

// Returns the cases of a list without their reasons, in the file's order.
absl::StatusOr<std::vector<std::string>> ReadCaseList(const std::string& path);

// Returns the reason that unsupported.txt gives for this result, in one line; "" if the case passes.
std::string ReasonOf(const absl::Status& result);
// Returns the cases of a list with their reasons; "" for a case without one.
absl::StatusOr<std::map<std::string, std::string>> ReadReasons(const std::string& path);

// Writes both lists into `folder`. A case with an OK status is supported; any other status is its reason.
absl::Status WriteCaseLists(const std::string& folder, const std::map<std::string, absl::Status>& results);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_CASE_LISTS_H_

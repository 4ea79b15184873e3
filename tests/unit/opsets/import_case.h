// SPDX-License-Identifier: Apache-2.0
// One operator in a model of its own, imported at its opset and run by the interpreter without passes.
//
// It shows what the importer makes of a node: old forms, functions and constants included. Operator functions alone are
// tested with tests/unit/ops/op_case.h. Start with ExpectImported.
#ifndef HONE_TESTS_UNIT_OPSETS_IMPORT_CASE_H_
#define HONE_TESTS_UNIT_OPSETS_IMPORT_CASE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {

// Inputs are model inputs, except those in `constants`, which are initializers. Outputs in `unused` have no name.
// `graphs` are further attributes of the node, from GraphAttr. Only they read the inputs in `captured`, by the name
// x<i>.
struct ImportOf {
  std::set<size_t> constants = {};
  std::set<size_t> unused = {};
  std::vector<std::string> graphs = {};
  std::set<size_t> captured = {};
};

// Returns the outputs; those of unused outputs are empty.
absl::StatusOr<std::vector<Constant>> RunImported(const OpCase& test_case, const ImportOf& import = {});
// Expects output number `output` to have this shape and these numbers, within `tolerance` (absolute, and relative for
// numbers above 1).
void ExpectImported(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers,
                    const ImportOf& import = {}, size_t output = 0, double tolerance = 1e-5);
// Expects the import to fail with this code and a message that contains the text.
void ExpectRefused(const OpCase& test_case, absl::StatusCode code, const std::string& text,
                   const ImportOf& import = {});

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_OPSETS_IMPORT_CASE_H_

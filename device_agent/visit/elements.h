// SPDX-License-Identifier: Apache-2.0
// Pure functions over the elements of buffers: filling inputs from a seed, and comparing an output with the reference.
// The rules are those of proto/hone/v1/measure.proto.
#ifndef HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_
#define HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_

#include <cstdint>
#include <string>

#include "device_agent/visit/batch.h"

namespace hone::agent {

// Fills the buffer.bytes bytes at `data`. `position` is the index of the buffer in its batch.
void Fill(const VisitBuffer& buffer, int position, uint64_t fill_seed, void* data);

struct Comparison {
  bool equal = false;
  double max_error = 0;  // largest |output - reference| over max|reference|; infinite when NaN meets a number
  std::string text;      // describes the first difference; "" when equal
};
// Compares `output` with `reference`, both of the type and length of `buffer`. The tolerance applies to floats and to
// integers that are rounded floats; other integers must be equal. An element passes if
// |output - reference| <= rtol * |reference| + atol * max|reference|, plus 1 for rounded integers.
Comparison Compare(const VisitBuffer& buffer, const Tolerance& tolerance, const void* output, const void* reference);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_

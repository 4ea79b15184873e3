// SPDX-License-Identifier: Apache-2.0
// Elements of buffers: how they are filled from a seed, and how an output is compared with the reference.
//
// The rules are those of proto/hone/v1/measure.proto. Pure functions over bytes.
#ifndef HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_
#define HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_

#include <cstdint>
#include <string>

#include "device_agent/visit/batch.h"

namespace hone::agent {

// Fills `data` (buffer.bytes of them) as buffer number `position` of its batch.
void Fill(const VisitBuffer& buffer, int position, uint64_t fill_seed, void* data);

struct Comparison {
  bool equal = false;
  double max_error = 0;  // largest |output - reference| over max|reference|; infinite when NaN meets a number
  std::string text;      // what differs first, for people; "" when equal
};
// Compares `output` with `reference`, both laid out as `buffer` says. The tolerance is for floats, and for integers
// that are rounded ones.
Comparison Compare(const VisitBuffer& buffer, const Tolerance& tolerance, const void* output, const void* reference);

float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);  // nearest, ties to even

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_ELEMENTS_H_

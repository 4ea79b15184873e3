// SPDX-License-Identifier: Apache-2.0
// One finding of `doctor`: a thing that was checked, whether it is in order, and how to fix it.
#ifndef HONE_DEVICE_AGENT_DOCTOR_FINDING_H_
#define HONE_DEVICE_AGENT_DOCTOR_FINDING_H_

#include <string>

namespace hone::agent {

enum class Verdict {
  kGood,
  kNote,  // worth knowing, but acceptable for a farm
  kBad,   // disturbs timings, or weakens the security of the machine or the farm
};

struct Finding {
  std::string check;  // "governor": one word, the same in every version
  Verdict verdict = Verdict::kGood;
  std::string what;  // the state, in words, with figures
  std::string fix;   // a command or an instruction; empty if nothing needs to be done
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_FINDING_H_

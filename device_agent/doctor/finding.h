// SPDX-License-Identifier: Apache-2.0
// What `doctor` says of one thing that it looked at: whether that is as it should be, and what mends it.
#ifndef HONE_DEVICE_AGENT_DOCTOR_FINDING_H_
#define HONE_DEVICE_AGENT_DOCTOR_FINDING_H_

#include <string>

namespace hone::agent {

enum class Verdict {
  kGood,
  kNote,  // worth knowing; a farm can live with it
  kBad,   // spoils timings, or what protects the machine and the farm
};

struct Finding {
  std::string check;  // "governor": one word, the same in every version
  Verdict verdict = Verdict::kGood;
  std::string what;  // for people, with the numbers
  std::string mend;  // a command, or what to do; empty where there is nothing to
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_FINDING_H_

// SPDX-License-Identifier: Apache-2.0
// How long the run of the whole model at the end of a job takes (confirm_model.h). Pure arithmetic.
#ifndef HONE_TUNER_CONFIRMATION_TIME_H_
#define HONE_TUNER_CONFIRMATION_TIME_H_

#include <algorithm>
#include <cstddef>

namespace hone::tuner {

inline constexpr double kModelSecondsMin = 2;    // the shortest measurement of a package
inline constexpr double kModelSecondsFull = 10;  // of a job that searched for minutes
inline constexpr double kModelSecondsMax = 60;   // of a model whose runs take long
inline constexpr double kModelRuns = 100;        // of each package, if kModelSecondsMax allows

// How long each of the two packages is measured: a twentieth of the time that the search took, from kModelSecondsMin to
// kModelSecondsFull, and longer where kModelRuns runs take longer. untuned_seconds: of one run; 0: not known.
inline double ModelSeconds(double search_seconds, double untuned_seconds) {
  const double fair = std::clamp(search_seconds / 20, kModelSecondsMin, kModelSecondsFull);
  return std::clamp(kModelRuns * untuned_seconds, fair, kModelSecondsMax);
}

// The seconds that a job with a time to end (JobSpec.until) keeps for the run: both packages with their warm-up, and
// compiling, which is guessed.
inline double ConfirmationSeconds(double search_seconds, double untuned_seconds, std::size_t workloads) {
  constexpr double kStartSeconds = 5, kCompileSeconds = 0.2;  // of processes and files; of the kernels of a workload
  return kStartSeconds + kCompileSeconds * static_cast<double>(workloads) +
         2.2 * ModelSeconds(search_seconds, untuned_seconds);
}

}  // namespace hone::tuner

#endif  // HONE_TUNER_CONFIRMATION_TIME_H_

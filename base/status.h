// SPDX-License-Identifier: Apache-2.0
// Status macros. Expected failures are absl::Status and absl::StatusOr; bugs in Hone abort through HONE_CHECK.
#ifndef HONE_BASE_STATUS_H_
#define HONE_BASE_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define HONE_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                               \
    if (absl::Status hone_status_ = (expr); !hone_status_.ok()) return hone_status_; \
  } while (0)

#define HONE_CONCAT_INNER_(a, b) a##b
#define HONE_CONCAT_(a, b) HONE_CONCAT_INNER_(a, b)
// HONE_ASSIGN_OR_RETURN(auto x, F()): returns F's error, or declares x with its value.
#define HONE_ASSIGN_OR_RETURN(lhs, expr) HONE_ASSIGN_OR_RETURN_(HONE_CONCAT_(hone_or_, __LINE__), lhs, expr)
#define HONE_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  lhs = *std::move(tmp)

// Aborts with the file, line and condition if the condition is false. Only for conditions that a bug in Hone alone can
// break, never for bad input.
#define HONE_CHECK(condition)                                                              \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: internal error: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (0)

namespace hone {

// The status with "context: " before its message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(context) + ": " + std::string(status.message()));
}

}  // namespace hone

#endif  // HONE_BASE_STATUS_H_

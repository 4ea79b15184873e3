// SPDX-License-Identifier: Apache-2.0
// SHA-256, as lower-case hex: the identity of workloads, artifacts and packages.
#ifndef HONE_BASE_DIGEST_H_
#define HONE_BASE_DIGEST_H_

#include <string>
#include <string_view>

namespace hone {

std::string Sha256Hex(std::string_view bytes);  // 64 characters

}  // namespace hone

#endif  // HONE_BASE_DIGEST_H_

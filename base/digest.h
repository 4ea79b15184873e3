// SPDX-License-Identifier: Apache-2.0
// SHA-256: the identity of workloads, artifacts, packages and files.
#ifndef HONE_BASE_DIGEST_H_
#define HONE_BASE_DIGEST_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

using Sha256Digest = std::array<uint8_t, 32>;

std::string Sha256Hex(std::string_view bytes);  // 64 characters, lower case
std::string Hex(const Sha256Digest& digest);    // the same form
// Whether the text has the form that Hex gives.
bool IsSha256Hex(std::string_view text);
// The digest that Hex gives this text for; nullopt if the text has another form.
std::optional<Sha256Digest> ParseSha256Hex(std::string_view text);
Sha256Digest Sha256Of(std::string_view bytes);

// The digest of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void Add(std::string_view bytes);
  Sha256Digest Finish();  // once, as the last call

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;  // of OpenSSL
};

}  // namespace hone

#endif  // HONE_BASE_DIGEST_H_

// SPDX-License-Identifier: Apache-2.0
// How the load reaches its tracker: over a socket, or over TLS, where each caller has a certificate of its own.
#ifndef HONE_TESTS_BENCH_FARM_ENTRANCE_H_
#define HONE_TESTS_BENCH_FARM_ENTRANCE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "pki/certificates.h"
#include "transport/farm_identity.h"
#include "transport/transport.h"

namespace hone::farm {

class Entrance {
 public:
  // folder: for the socket, or for all certificates.
  Entrance(const std::filesystem::path& folder, bool tls);

  // What the tracker listens on; with TLS, it has its certificates in pki_folder().
  const std::string& listen() const { return address_; }
  std::filesystem::path pki_folder() const { return authority_.has_value() ? folder_ / "pki" : ""; }
  // Where it is found, once it listens.
  void SetAddress(const std::string& address) { address_ = address; }
  // Connects when it is first used. Makes a certificate of that role and name where one is needed.
  std::shared_ptr<grpc::Channel> Open(Role role, const std::string& name) const;

 private:
  const std::filesystem::path folder_;
  std::optional<pki::Authority> authority_;
  std::string address_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_ENTRANCE_H_

// SPDX-License-Identifier: Apache-2.0
// Connections of the load generators to the tracker: over a socket, or over TLS with a certificate for each caller.
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
  // folder: holds the socket, or all certificates.
  Entrance(const std::filesystem::path& folder, bool tls);

  // Address for the tracker to listen on. With TLS, the tracker's certificates are in pki_folder().
  const std::string& listen() const { return address_; }
  std::filesystem::path pki_folder() const { return authority_.has_value() ? folder_ / "pki" : ""; }
  // Sets the address at which the tracker can be reached, once it listens.
  void SetAddress(const std::string& address) { address_ = address; }
  // With TLS: the files of a certificate for this role and name, which is made at the first call.
  TlsFiles FilesOf(Role role, const std::string& name) const;
  // Opens a channel, which connects at its first use. With TLS, it presents the certificate of this role and name.
  std::shared_ptr<grpc::Channel> Open(Role role, const std::string& name) const;

 private:
  const std::filesystem::path folder_;
  std::optional<pki::Authority> authority_;
  std::string address_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_ENTRANCE_H_

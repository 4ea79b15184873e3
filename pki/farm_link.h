// SPDX-License-Identifier: Apache-2.0
// The channel of a long-running program to its tracker, with a certificate that never ends: renewed when two thirds of
// its time are over, and read again when somebody else has replaced it.
//
// A connection keeps the certificate that it was made with, so a new certificate means a new channel: ask for it at
// every call, or every few. Calls on the old one end undisturbed. Start at Open.
#ifndef HONE_PKI_FARM_LINK_H_
#define HONE_PKI_FARM_LINK_H_

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "pki/certificates.h"
#include "transport/transport.h"

namespace hone::pki {

// Whether a tracker of the farm can take the certificate in the folder at `now`: of any other it ends the connection
// without a word. Returns a warning where this machine's clock is behind, and for people, whose certificates nobody
// renews, when less than a tenth of its life is left; else nothing.
// kUnauthenticated: it has ended, or the authority beside it has not signed it; the text says how to get another one.
// Others as IdentityIn (identity_folder.h).
absl::StatusOr<std::string> CheckCertificateIn(const std::filesystem::path& folder, absl::Time now);

// When to ask for a new certificate: from a time on that the system's clock says, as certificates go by it, and after
// that with pauses that it cannot make longer, however it is set.
class RenewalTries {
 public:
  // Whether to ask at this moment; if so, then not again for a hundredth of the certificate's life. now: by the
  // system's clock; steady: SteadyNow().
  bool Due(const CertificateFacts& facts, absl::Time now, absl::Time steady);

 private:
  absl::Time next_ = absl::InfinitePast();  // by the steady clock
};

class FarmLink {
 public:
  // folder: of an identity (identity_folder.h); empty for a socket, where nothing is shown. Errors as OpenChannel, and
  // CheckCertificateIn: who starts with a certificate that no tracker takes would wait in vain.
  static absl::StatusOr<std::unique_ptr<FarmLink>> Open(const std::string& address,
                                                        const std::filesystem::path& folder);
  ~FarmLink();

  // Both from any thread. The second gives the channel `patience` to connect where it is not, less once a stop is
  // requested. gRPC moves a connection on only while somebody waits for something of it: of a program that calls now
  // and then, and sleeps between, TLS would never be through in time.
  std::shared_ptr<grpc::Channel> channel();
  std::shared_ptr<grpc::Channel> ConnectedChannel(absl::Duration patience, const std::stop_token& stop = {});

 private:
  FarmLink(std::string address, std::filesystem::path folder)
      : address_(std::move(address)), folder_(std::move(folder)) {}
  TlsFiles Files() const;
  void KeepFresh();
  // Both by the thread of KeepFresh, and by Open before.
  absl::Status Reopen();
  absl::Duration RenewIfDue();  // and when to look again
  // Logs what is wrong with the certificate, once; empty: nothing is.
  void Say(const std::string& wrong);

  const std::string address_;
  const std::filesystem::path folder_;
  std::string shown_;  // identity.pem as channel_ shows it
  std::string said_;   // what was wrong with it, when looked at last
  RenewalTries tries_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::shared_ptr<grpc::Channel> channel_;
  std::thread thread_;  // none without a folder
};

}  // namespace hone::pki

#endif  // HONE_PKI_FARM_LINK_H_

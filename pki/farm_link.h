// SPDX-License-Identifier: Apache-2.0
// The channel of a long-running program to its tracker. A thread renews the program's certificate after two thirds of
// its lifetime, and reads it again when another program has replaced it.
//
// A connection keeps the certificate that it was made with, so a new certificate needs a new channel. Callers must
// therefore call channel() for every call, or every few. Calls on the old channel end normally. Start at Open.
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

// Checks whether a tracker of the farm will accept the certificate in the folder at `now`. Without this check, a
// program with a bad certificate sees only closed connections. Returns a warning if this machine's clock is behind, or
// if less than a tenth of the lifetime is left; else "". The second warning is given for every role. It is meant for
// users, because only a FarmLink renews a certificate by itself. kUnauthenticated: the certificate has expired, or the
// authority in the folder has not signed it; the text says how to get another one. Other errors as ReadIdentity
// (identity_folder.h).
absl::StatusOr<std::string> CheckCertificateIn(const std::filesystem::path& folder, absl::Time now);

// Decides when to try a renewal. The first attempt is due by the system's clock, as certificates are. The pauses
// between attempts are by a steady clock, so that setting the system's clock cannot prolong them.
class RenewalSchedule {
 public:
  // Whether to try now. After true it returns false for a hundredth of the certificate's lifetime. now: by the system's
  // clock; steady: SteadyNow().
  bool ShouldTry(const CertificateFacts& facts, absl::Time now, absl::Time steady);

 private:
  absl::Time next_ = absl::InfinitePast();  // by the steady clock
};

class FarmLink {
 public:
  // Does not connect and does not wait for the tracker. folder: an identity folder (identity_folder.h) of any role,
  // whose certificate the link renews; empty for a unix socket, which uses no certificate. Errors as OpenChannel and
  // CheckCertificateIn, because with a bad certificate every call would fail. Warnings are not returned.
  static absl::StatusOr<std::unique_ptr<FarmLink>> Open(const std::string& address,
                                                        const std::filesystem::path& folder);
  ~FarmLink();

  // The current channel. Both functions are safe from any thread. AwaitConnectedChannel waits up to `patience` for the
  // channel to connect, ends early at a stop, and returns the channel even if it has not connected. It is needed by
  // programs that call rarely and sleep in between: gRPC advances a handshake only while a call waits, so that it would
  // otherwise never finish in time.
  std::shared_ptr<grpc::Channel> channel();
  std::shared_ptr<grpc::Channel> AwaitConnectedChannel(absl::Duration patience, const std::stop_token& stop = {});

 private:
  FarmLink(std::string address, std::filesystem::path folder)
      : address_(std::move(address)), folder_(std::move(folder)) {}
  TlsFiles Files() const;
  void RenewalLoop();
  // Both are called by the thread of RenewalLoop, and before it starts by Open.
  absl::Status Reopen();
  absl::Duration RenewIfDue();  // returns when to call it again
  // Logs a problem of the certificate when it differs from the last one; "": there is none.
  void LogProblem(const std::string& wrong);

  const std::string address_;
  const std::filesystem::path folder_;
  std::string channel_identity_;  // the text of identity.pem with which channel_ was made
  std::string logged_problem_;    // the last problem given to LogProblem
  RenewalSchedule renewal_schedule_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::shared_ptr<grpc::Channel> channel_;
  std::thread thread_;  // none without a folder
};

}  // namespace hone::pki

#endif  // HONE_PKI_FARM_LINK_H_

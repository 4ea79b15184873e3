// SPDX-License-Identifier: Apache-2.0
// Whether who this program is in its farm holds: the folder of its identity, the certificate's time, and the clock
// against the tracker's. Start at CheckIdentity.
#ifndef HONE_DEVICE_AGENT_DOCTOR_IDENTITY_CHECKS_H_
#define HONE_DEVICE_AGENT_DOCTOR_IDENTITY_CHECKS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device_agent/doctor/finding.h"
#include "pki/certificates.h"

namespace hone::agent {

Finding CheckFolder(const std::filesystem::path& folder);  // closed to others, with an identity
// Of one that a tracker can take (pki::CheckCertificateIn). renewed: by the program itself, as agents and tuners do.
Finding CheckCertificate(const pki::CertificateFacts& facts, bool renewed, absl::Time now);
// A call went out at `sent`, came back at `heard`, and the tracker's clock said `there`.
Finding CheckSkew(absl::Time sent, absl::Time there, absl::Time heard);
// The tracker did not answer, and why.
Finding NoTracker(const std::string& address, const absl::Status& why);

// All of them; calls the tracker at `address`, or the one that was joined where it is empty. Takes some seconds where
// nobody answers.
std::vector<Finding> CheckIdentity(const std::filesystem::path& folder, const std::string& address, bool renewed);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_IDENTITY_CHECKS_H_

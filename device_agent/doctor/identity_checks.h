// SPDX-License-Identifier: Apache-2.0
// Checks of the identity of this program in its farm: the folder, the certificate's validity, and the clock compared
// with the tracker's. Start at CheckIdentity.
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

Finding CheckFolder(const std::filesystem::path& folder);  // it must hold an identity and be closed to other users
// For a certificate that passed pki::CheckCertificateIn. renewed: the program renews it itself, as agents and tuners
// do.
Finding CheckCertificate(const pki::CertificateFacts& facts, bool renewed, absl::Time now);
// Compares clocks: a call was sent at `sent` and answered at `heard`; in between the tracker's clock showed
// `tracker_time`.
Finding CheckClockSkew(absl::Time sent, absl::Time tracker_time, absl::Time heard);
// The finding if the tracker did not answer.
Finding TrackerUnreachable(const std::string& address, const absl::Status& why);

// All of them. Calls the tracker at `address`, or the joined one if it is empty. Takes some seconds if the tracker does
// not answer.
std::vector<Finding> CheckIdentity(const std::filesystem::path& folder, const std::string& address, bool renewed);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DOCTOR_IDENTITY_CHECKS_H_

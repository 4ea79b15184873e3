// SPDX-License-Identifier: Apache-2.0
// The names by which a process introduces itself to the other programs of a farm.
#ifndef HONE_BASE_IDENTITY_H_
#define HONE_BASE_IDENTITY_H_

#include <string>

namespace hone {

// The host name that the operating system reports.
std::string HostName();

// The name of the user this process runs as, or the user's number if the system has no name for it.
std::string UserName();

// 128 random bits of the system's generator as 32 hexadecimal digits: unique, and impossible to guess.
std::string RandomId();

}  // namespace hone

#endif  // HONE_BASE_IDENTITY_H_

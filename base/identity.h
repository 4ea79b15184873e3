// SPDX-License-Identifier: Apache-2.0
// How a process introduces itself to others of a farm.
#ifndef HONE_BASE_IDENTITY_H_
#define HONE_BASE_IDENTITY_H_

#include <string>

namespace hone {

// What the operating system calls this machine.
std::string HostName();

// Of the user this process runs as; its number where the system knows no name.
std::string UserName();

// 128 bits of the system's generator as hexadecimal digits: nobody else draws them, and nobody guesses them.
std::string RandomId();

}  // namespace hone

#endif  // HONE_BASE_IDENTITY_H_

// How a process introduces itself to others of a farm.
#ifndef HONE_BASE_IDENTITY_H_
#define HONE_BASE_IDENTITY_H_

#include <string>

namespace hone {

// What the operating system calls this machine.
std::string HostName();

// 24 hexadecimal digits that nobody else draws: for telling apart, not for secrets.
std::string RandomId();

}  // namespace hone

#endif  // HONE_BASE_IDENTITY_H_

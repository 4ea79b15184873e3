// SPDX-License-Identifier: Apache-2.0
#include "base/identity.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace hone {

std::string HostName() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string UserName() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  getpwuid_r(geteuid(), &entry, text.data(), text.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(geteuid());
}

std::string RandomId() {
  std::array<uint64_t, 2> bits{};
  // The system returns requests of up to 256 bytes completely, and no signal interrupts them.
  HONE_CHECK(getrandom(bits.data(), sizeof(bits), 0) == sizeof(bits));
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace hone

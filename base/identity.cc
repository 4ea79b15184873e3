#include "base/identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

namespace hone {

std::string HostName() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

}  // namespace hone

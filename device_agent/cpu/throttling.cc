#include "device_agent/cpu/throttling.h"

#include <cstdlib>
#include <fstream>

namespace hone::agent {
namespace {

// Of the firmware's word: too little voltage, clock capped, throttled, soft limit of temperature. The same bits 16
// higher say that it was so since the start, which is no reason to wait now.
constexpr unsigned long kNow = 0xf;

}  // namespace

bool SaysThrottled(const std::string& root) {
  std::string word;
  std::ifstream(root + "sys/devices/platform/soc/soc:firmware/get_throttled") >> word;
  return (std::strtoul(word.c_str(), nullptr, 16) & kNow) != 0;
}

}  // namespace hone::agent

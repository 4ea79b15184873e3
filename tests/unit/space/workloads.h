// Test support: small workloads of every kind the importer makes, with odd and prime extents among them.
#ifndef HONE_TESTS_UNIT_SPACE_WORKLOADS_H_
#define HONE_TESTS_UNIT_SPACE_WORKLOADS_H_

#include <ostream>
#include <string>
#include <vector>

namespace hone::testing {

struct NamedWorkload {
  std::string name, text;
};
inline std::ostream& operator<<(std::ostream& out, const NamedWorkload& w) { return out << w.name; }

std::vector<NamedWorkload> SmallWorkloads();
// Of those: sums of products of 8-bit integers, which tensor instructions can make.
std::vector<NamedWorkload> ByteWorkloads();

}  // namespace hone::testing

#endif  // HONE_TESTS_UNIT_SPACE_WORKLOADS_H_

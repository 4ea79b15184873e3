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

}  // namespace hone::testing

#endif  // HONE_TESTS_UNIT_SPACE_WORKLOADS_H_

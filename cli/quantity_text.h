// SPDX-License-Identifier: Apache-2.0
// Quantities as texts for people, in the unit that suits their size. JSON and CSV have plain numbers instead.
#ifndef HONE_CLI_QUANTITY_TEXT_H_
#define HONE_CLI_QUANTITY_TEXT_H_

#include <string>

namespace hone::cli {

std::string Latency(double seconds);  // "1.50 ms", "12.3 us": three significant digits
std::string BytesText(double bytes);  // "999 bytes", "1.5 kB", "24.0 MB", by powers of 1000

}  // namespace hone::cli

#endif  // HONE_CLI_QUANTITY_TEXT_H_

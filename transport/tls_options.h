// The command-line options behind TlsFiles, the same for every program of a farm.
#ifndef HONE_TRANSPORT_TLS_OPTIONS_H_
#define HONE_TRANSPORT_TLS_OPTIONS_H_

#include "transport/transport.h"

namespace CLI {
class App;
}

namespace hone {

// --tls-cert, --tls-key and --tls-ca. `files` must outlive the parsing.
void AddTlsOptions(CLI::App& app, TlsFiles& files);

}  // namespace hone

#endif  // HONE_TRANSPORT_TLS_OPTIONS_H_

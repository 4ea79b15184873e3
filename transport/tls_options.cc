#include "transport/tls_options.h"

#include <CLI/CLI.hpp>

namespace hone {

void AddTlsOptions(CLI::App& app, TlsFiles& files) {
  app.add_option("--tls-cert", files.certificate, "own certificate (PEM)");
  app.add_option("--tls-key", files.key, "its private key (PEM)");
  app.add_option("--tls-ca", files.authority, "certificate authority of the farm (PEM)");
}

}  // namespace hone

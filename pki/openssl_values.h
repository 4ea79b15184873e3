// SPDX-License-Identifier: Apache-2.0
// Values of OpenSSL with owners, and their PEM form. Only for the sources of this room.
#ifndef HONE_PKI_OPENSSL_VALUES_H_
#define HONE_PKI_OPENSSL_VALUES_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

namespace hone::pki {

template <typename T>
std::shared_ptr<T> Own(T* pointer, void (*release)(T*)) {
  return {pointer, release};
}

inline std::shared_ptr<BIO> Reader(std::string_view text) {
  return Own(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free_all);
}

// The first certificate in the text; null if there is none.
inline std::shared_ptr<X509> ParseCertificate(std::string_view pem) {
  return Own(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr), X509_free);
}

// The first private key in the text; null if there is none. The empty pass phrase keeps OpenSSL from asking for one at
// a terminal.
inline std::shared_ptr<EVP_PKEY> ParseKey(std::string_view pem) {
  static char none[] = "";
  return Own(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr, none), EVP_PKEY_free);
}

}  // namespace hone::pki

#endif  // HONE_PKI_OPENSSL_VALUES_H_

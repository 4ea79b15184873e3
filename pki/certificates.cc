// SPDX-License-Identifier: Apache-2.0
#include "pki/certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "pki/openssl_values.h"

namespace hone::pki {
namespace {

constexpr int kSerialBits = 127;  // positive, and too long to guess

// The text that `write` puts into a BIO.
std::string WriteToString(const std::function<int(BIO*)>& write) {
  const auto bio = Own(BIO_new(BIO_s_mem()), BIO_free_all);
  HONE_CHECK(write(bio.get()) == 1);  // writing to memory cannot fail
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

bool IsP256(EVP_PKEY* key) {
  char group[32] = "";
  size_t size = 0;
  return key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 && std::string_view(group) == "prime256v1";
}

// Converts a time of a certificate. Parsing a certificate does not check its times.
absl::StatusOr<absl::Time> ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::InvalidArgumentError("the certificate's time cannot be read");
  }
  // Not through time_t, which ends in 2038 on 32-bit systems.
  const absl::CivilSecond second(parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                                 parts.tm_sec);
  return absl::FromCivil(second, absl::UTCTimeZone());
}

bool SetValidity(X509* certificate, const Validity& validity) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(validity.until)) != nullptr;
}

bool SetSerial(X509* certificate) {
  const auto number = Own(BN_new(), BN_free);
  return BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const auto extension = Own(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool IsAddress(std::string_view host) {
  unsigned char bytes[16];
  const std::string text(host);
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof(text));
  return text;
}

std::string Text(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<size_t>(ASN1_STRING_length(string))};
}

// The subject alternative names of one type: GEN_URI, GEN_DNS or GEN_IPADD.
std::vector<std::string> NamesOf(X509* certificate, int type) {
  std::vector<std::string> found;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != type) continue;
    found.push_back(type == GEN_IPADD ? AddressText(name->d.iPAddress) : Text(name->d.ia5));
  }
  GENERAL_NAMES_free(names);
  return found;
}

std::string FingerprintOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HONE_CHECK(X509_digest(certificate, EVP_sha256(), digest, &size) == 1);
  return absl::WebSafeBase64Escape(std::string(reinterpret_cast<const char*>(digest), size));
}

absl::StatusOr<std::shared_ptr<X509_REQ>> ParseRequest(std::string_view pem) {
  auto request = Own(PEM_read_bio_X509_REQ(Reader(pem).get(), nullptr, nullptr, nullptr), X509_REQ_free);
  if (request == nullptr) return absl::InvalidArgumentError("the text is not a certificate request (PKCS #10, PEM)");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!IsP256(key)) return absl::InvalidArgumentError("the key in the certificate request must be an EC P-256 key");
  if (X509_REQ_verify(request.get(), key) != 1) {
    return absl::InvalidArgumentError("the certificate request is not signed with the key that it names");
  }
  return request;
}

absl::Status LibraryError() { return absl::InternalError("the OpenSSL library cannot make a certificate"); }

}  // namespace

absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem) {
  const auto certificate = ParseCertificate(pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("there is no certificate (PEM) in it");
  HONE_ASSIGN_OR_RETURN(const absl::Time from, ToTime(X509_get0_notBefore(certificate.get())));
  HONE_ASSIGN_OR_RETURN(const absl::Time until, ToTime(X509_get0_notAfter(certificate.get())));
  const auto serial = Own(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr), BN_free);
  char* digits = BN_bn2hex(serial.get());
  CertificateFacts facts{digits, NamesOf(certificate.get(), GEN_URI), from, until, FingerprintOf(certificate.get())};
  OPENSSL_free(digits);
  return facts;
}

bool IsSignedBy(std::string_view pem, std::string_view authority_pem) {
  const auto certificate = ParseCertificate(pem);
  const auto rest = Reader(authority_pem);
  bool is_signed = false;
  while (certificate != nullptr && !is_signed) {
    const auto authority = Own(PEM_read_bio_X509(rest.get(), nullptr, nullptr, nullptr), X509_free);
    if (authority == nullptr) break;
    is_signed = X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  }
  ERR_clear_error();  // otherwise TLS on this thread would report the error left here as its own
  return is_signed;
}

absl::Time RenewalTime(const CertificateFacts& facts) { return facts.from + (facts.until - facts.from) * 2 / 3; }

std::string ClockBehindWarning(const CertificateFacts& facts, absl::Time now) {
  if (now >= facts.from) return "";
  return fmt::format(
      "this machine's clock is behind: a certificate of its farm is valid only from {}; set the clock (sudo "
      "timedatectl set-ntp true)",
      absl::FormatTime(facts.from, absl::UTCTimeZone()));
}

std::string MakeKey() {
  const auto key = Own(EVP_EC_gen("P-256"), EVP_PKEY_free);
  HONE_CHECK(key != nullptr);  // OpenSSL always has the curve
  return WriteToString(
      [&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
}

absl::StatusOr<std::string> MakeRequest(std::string_view key_pem) {
  const auto key = ParseKey(key_pem);
  if (key == nullptr) return absl::InvalidArgumentError("there is no private key (PEM) in it");
  const auto request = Own(X509_REQ_new(), X509_REQ_free);
  if (X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0) {
    return LibraryError();
  }
  return WriteToString([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
}

absl::StatusOr<Authority> Authority::Make(const Validity& validity) {
  const Key key = Own(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate certificate = Own(X509_new(), X509_free);
  X509* raw = certificate.get();
  X509_NAME* name = X509_get_subject_name(raw);
  const auto* text = reinterpret_cast<const unsigned char*>("authority of a Hone farm");
  const bool made = key != nullptr && X509_set_version(raw, X509_VERSION_3) == 1 && SetSerial(raw) &&
                    SetValidity(raw, validity) && X509_set_pubkey(raw, key.get()) == 1 &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(raw, name) == 1 &&
                    AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    AddExtension(raw, raw, NID_subject_key_identifier, "hash") &&
                    X509_sign(raw, key.get(), EVP_sha256()) != 0;
  if (!made) return LibraryError();
  return Authority(certificate, key);
}

absl::StatusOr<Authority> Authority::Read(std::string_view certificate_pem, std::string_view key_pem) {
  const Certificate certificate = ParseCertificate(certificate_pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("the authority's certificate (PEM) cannot be read");
  const Key key = ParseKey(key_pem);
  if (key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("the authority's key cannot be read, or belongs to another certificate");
  }
  return Authority(certificate, key);
}

absl::StatusOr<std::string> Authority::SignMember(std::string_view request_pem, const FarmIdentity& identity,
                                                  const Validity& validity) const {
  return Sign(request_pem, "URI:" + UriOf(identity), "clientAuth", validity);
}

absl::StatusOr<std::string> Authority::SignTracker(std::string_view request_pem, const std::vector<std::string>& hosts,
                                                   const Validity& validity) const {
  HONE_CHECK(!hosts.empty());
  std::string names;
  for (const std::string& host : hosts) {
    HONE_RETURN_IF_ERROR(CheckHost(host));
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", IsAddress(host) ? "IP" : "DNS", host);
  }
  return Sign(request_pem, names, "serverAuth", validity);
}

absl::StatusOr<std::string> Authority::Sign(std::string_view request_pem, const std::string& names, const char* usage,
                                            const Validity& validity) const {
  HONE_ASSIGN_OR_RETURN(const auto request, ParseRequest(request_pem));
  const Certificate certificate = Own(X509_new(), X509_free);
  X509 *raw = certificate.get(), *issuer = certificate_.get();
  // All authorities have the same name. Where a farm trusts two, the key identifier tells which one signed.
  const bool has_id = X509_get0_subject_key_id(issuer) != nullptr;
  const bool made = X509_set_version(raw, X509_VERSION_3) == 1 && SetSerial(raw) && SetValidity(raw, validity) &&
                    X509_set_pubkey(raw, X509_REQ_get0_pubkey(request.get())) == 1 &&
                    X509_set_issuer_name(raw, X509_get_subject_name(issuer)) == 1 &&
                    AddExtension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(raw, issuer, NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(raw, issuer, NID_ext_key_usage, usage) &&
                    AddExtension(raw, issuer, NID_subject_alt_name, "critical," + names) &&
                    (!has_id || AddExtension(raw, issuer, NID_authority_key_identifier, "keyid")) &&
                    X509_sign(raw, key_.get(), EVP_sha256()) != 0;
  if (!made) return LibraryError();
  return WriteToString([&](BIO* bio) { return PEM_write_bio_X509(bio, raw); });
}

std::string Authority::certificate() const {
  return WriteToString([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate_.get()); });
}

std::string Authority::key() const {
  return WriteToString(
      [&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
}

absl::Status CheckHost(std::string_view host) {
  const bool name = !host.empty() && host.size() <= 253 && host.front() != '-' && host.front() != '.' &&
                    std::all_of(host.begin(), host.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                             c == '-' || c == '_';
                    });
  if (name || IsAddress(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("'{}' is neither a host name nor an address", host));
}

absl::StatusOr<std::vector<std::string>> CertificateHosts(std::string_view certificate_pem) {
  const auto certificate = ParseCertificate(certificate_pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("there is no certificate (PEM) in it");
  std::vector<std::string> hosts = NamesOf(certificate.get(), GEN_DNS);
  for (std::string& address : NamesOf(certificate.get(), GEN_IPADD)) hosts.push_back(std::move(address));
  return hosts;
}

}  // namespace hone::pki

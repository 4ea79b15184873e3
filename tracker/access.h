// Who may call what: one table over all methods of all services, and the check that every call over TLS goes through.
//
// What is not in the table nobody may call. On the socket of one user there is no check: whoever gets that far is that
// user, to whom everything belongs (tracker/private_socket.h).
#ifndef HONE_TRACKER_ACCESS_H_
#define HONE_TRACKER_ACCESS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

// method: "/hone.v1.AgentService/Synchronize". kPermissionDenied: says which roles may.
absl::Status CheckRole(Role role, std::string_view method);

// Whether the table has an entry for the method.
bool HasRule(std::string_view method);

// The caller of a method that the check let through; nullopt: this user, on the socket.
std::optional<FarmIdentity> CallerOf(const grpc::AuthContext& context);

// A caller may act under no other name than its own. kPermissionDenied.
absl::Status CheckName(const std::optional<FarmIdentity>& caller, std::string_view name);

// Refuses a call, before its message is read, whose caller's certificate has no identity (UNAUTHENTICATED) or not the
// role (PERMISSION_DENIED). For the credentials of the server.
class RoleCheck final : public grpc::AuthMetadataProcessor {
 public:
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                       OutputMetadata* response) override;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_ACCESS_H_

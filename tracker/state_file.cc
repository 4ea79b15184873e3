#include "tracker/state_file.h"

#include <sqlite3.h>

#include "base/status.h"

namespace hone::tracker {
namespace {

constexpr char kSettings[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA trusted_schema = OFF;";

}  // namespace

absl::StatusOr<records::Connection> OpenStateFile(const std::filesystem::path& path, const std::string& schema) {
  HONE_ASSIGN_OR_RETURN(records::Connection connection,
                        records::Connection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ""));
  HONE_RETURN_IF_ERROR(connection.Execute(kSettings + schema));
  return connection;
}

}  // namespace hone::tracker

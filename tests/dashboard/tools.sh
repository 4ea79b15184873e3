# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the dashboard: sees to it that the packages of dashboard/package-lock.json are there, or ends
# the test as skipped (exit code 77).
set -euo pipefail
dashboard=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../dashboard" && pwd)
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
  echo "skipped: $1"
  exit 77
}
command -v node > /dev/null && command -v npm > /dev/null || skip "Node.js or npm is not installed"
[[ $(node -p 'Number(process.versions.node.split(".")[0]) >= 18') == true ]] || skip "Node.js is older than 18"

# Tests that run at the same time fetch them once.
exec 9> "$dashboard/.fetching"
flock 9
if ! cmp -s "$dashboard/package-lock.json" "$dashboard/node_modules/.fetched"; then
  (cd "$dashboard" && timeout 240 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries 1 > .fetching 2>&1) ||
    skip "npm ci in dashboard/ failed: $(grep -m 1 'npm error' "$dashboard/.fetching")"
  cp "$dashboard/package-lock.json" "$dashboard/node_modules/.fetched"
fi
flock -u 9
exec 9>&-

# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of Python: $python, Debian's Python 3 with NumPy, or the test ends as skipped (exit code 77).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=/usr/bin/python3
if ! "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
  echo "skipped: $python is older than 3.11 or has no NumPy (apt: python3-numpy)"
  exit 77
fi
export PYTHONDONTWRITEBYTECODE=1

# SPDX-License-Identifier: Apache-2.0
"""`python -m voxgrad` is the command `voxgrad`."""

import sys

from voxgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m lavax`: the commands of lavax."""
from __future__ import annotations

import sys

from lavax.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m tilewright`, and the command `tilewright`."""

import sys

from tilewright import __version__
from tilewright.tools import cli


def main() -> int:
    """Run the command line; return its exit status. Letters that a terminal does not have are escaped."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return cli.main(version=__version__)


if __name__ == "__main__":
    sys.exit(main())

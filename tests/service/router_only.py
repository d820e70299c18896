"""`manul` with a service whose router answers every request: `python router_only.py serve`."""

import re

from manul.cli import main
from manul.service.http import fast_path

if __name__ == "__main__":
    fast_path.LINE = re.compile(rb"(?!)")
    main()

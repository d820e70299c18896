"""`manul` with a service whose router answers every request: `python router_only.py serve`."""

import re

from manul.cli import main
from manul.service.http import application

if __name__ == "__main__":
    application.HOT = re.compile(r"(?!)")
    main()

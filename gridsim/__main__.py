"""Entry point of ``python -m gridsim``."""

from gridsim.cli import main

raise SystemExit(main())

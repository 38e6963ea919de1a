"""``python -m gridsim`` is ``gridsim``."""

from gridsim.cli import main

raise SystemExit(main())

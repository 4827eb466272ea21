"""A plugin of pytest: with SERRATE_PATCH=1, tests of others run on this package."""

import os

if os.environ.get("SERRATE_PATCH") == "1":
    import serrate

    serrate.patch()

"""A pytest plugin. With SERRATE_PATCH=1, tests of nested_ragged_tensors and its users run on this package."""

import os

if os.environ.get("SERRATE_PATCH") == "1":
    import serrate

    serrate.patch()

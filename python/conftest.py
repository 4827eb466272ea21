import pytest


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    """Examples of docstrings know the package."""
    import serrate

    doctest_namespace["serrate"] = serrate

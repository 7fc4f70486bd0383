"""The Fluvio profile of the kit on trial."""

import pytest

pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

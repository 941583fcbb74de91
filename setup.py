"""The part of the build that pyproject.toml cannot say: a README whose links work on an index."""

import re
from pathlib import Path

from setuptools import setup

MAIN = "https://github.com/cbench/cbench-server/blob/main/"
LOCAL_LINK = re.compile(r"(\]\()(?![a-z]+:|#)")

setup(
    long_description=LOCAL_LINK.sub(rf"\1{MAIN}", Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)

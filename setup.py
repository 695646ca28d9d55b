"""What pyproject.toml can't say: the page that an index shows is README.md, whose links to files would lead nowhere."""

import re
from pathlib import Path

from setuptools import setup

BESIDE = re.compile(r"\[([^]]+)\]\((?!https?://)[\w./-]+\)")  # a link to a file of the repository

setup(long_description=BESIDE.sub(r"\1", Path("README.md").read_text()), long_description_content_type="text/markdown")

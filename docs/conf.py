"""How Sphinx makes the guide: `make docs`. Nothing that it makes loads anything from another host."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent)]  # the package of this checkout, and `docs` itself

from docs import generate  # noqa: E402
from parallel_mix import __version__  # noqa: E402

project = "parallel-mix"
author = "The parallel-mix developers"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "docs.docstrings", "docs.mathematics"]
exclude_patterns = ["_build", "_generated/*.md"]  # the latter are included by pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

highlight_language = "text"
smartquotes = False  # "marginal" is a value
default_role = "code"  # `name` in docstrings
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

html_theme = "pydata_sphinx_theme"
html_title = f"parallel-mix {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"secondary_sidebar_items": ["page-toc"], "footer_end": []}

generate.write_all(FOLDER / "_generated")

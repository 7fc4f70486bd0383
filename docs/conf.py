"""How the documentation is built."""
# ruff: noqa: INP001 - Sphinx executes this file, nothing imports it

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "lance-sdk"
author = "The lance-sdk authors"
project_copyright = author
release = version = version_of("lance-sdk")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "lance_docs"]
exclude_patterns = ["_build", "_generated"]
default_role = "code-or-link"
root_doc = "index"

nitpicky = True
# What send() takes, by values=
nitpick_ignore = [("py:class", "lance_sdk._api.arguments.sendable.V")]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_attr_annotations = False  # the signature shows the types
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"lance-sdk {release}"
html_static_path = ["_static"]
html_css_files = ["lance.css"]
html_copy_source = False
html_show_sourcelink = False

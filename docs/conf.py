"""How `make docs` builds the manual: the repository is the source folder, so that links are the same here and there."""

from __future__ import annotations

import sys
from pathlib import Path

import dpselect

sys.path.insert(0, str(Path(__file__).parent))

project = "dpselect"
author = "The dpselect maintainers"
release = dpselect.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "generated"]

root_doc = "docs/index"
include_patterns = ["docs/**.md", "src/dpselect/**.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "dist", "demo", "tests", "benchmarks", "experiments", "mutants", "**/__pycache__"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# A name in single backticks of a docstring is linked if it is a public one, and code otherwise.
smartquotes = False
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autosummary_generate = False
napoleon_google_docstring = False
# All sections of a docstring look alike: a title, and below it prose or a list of names with their meaning.
napoleon_custom_sections = ["Parameters", "Attributes", "Returns", "Yields", "Raises"]
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
add_module_names = False
python_use_unqualified_type_names = True

# Addresses of a server that the reader runs.
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1)[:/]"]
linkcheck_timeout = 20

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"dpselect {release}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#b83b08",
        "color-brand-content": "#1769aa",
        "color-sidebar-link-text--top-level": "var(--color-foreground-primary)",
    },
    "dark_css_variables": {
        "color-brand-primary": "#ff9c6b",
        "color-brand-content": "#74b9f0",
        "color-sidebar-link-text--top-level": "var(--color-foreground-primary)",
    },
}

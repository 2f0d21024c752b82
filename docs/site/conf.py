"""Sphinx's configuration of the documentation site. tools/docs writes the sources it reads."""
import os

project = "spate"
author = "the authors of spate"
copyright = author  # noqa: A001 (Sphinx's name)
version = release = os.environ["SPATE_VERSION"]

extensions = ["myst_parser", "breathe"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

breathe_projects = {"spate": os.environ["SPATE_DOXYGEN_XML"]}
breathe_default_project = "spate"
breathe_default_members = ("members",)
breathe_show_include = False

primary_domain = "cpp"
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"spate {release}"
html_copy_source = False
html_show_sphinx = False
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_static_path = [os.environ["SPATE_SITE_STATIC"]]

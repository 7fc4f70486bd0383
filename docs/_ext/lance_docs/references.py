"""Links to Python objects: to this site where they are documented, else to Python's own pages.

The build reads no foreign inventory, so it needs no network. A name of the standard library is
imported instead: one that does not exist stays unresolved and fails a nitpicky build.
"""

import sys
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.nodes import Element, TextElement
from docutils.nodes import literal as literal_node
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

_LIBRARY = "https://docs.python.org/3/library"
_IMPORTED = {"datetime": "datetime.datetime"}
"""Names of the library that an annotation in quotes has without their module."""


class CodeOrLink(SphinxRole):
    """What stands between single backticks: a link when the site documents it, else code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the reference, marked as one that may come to nothing."""
        target = self.text.removesuffix("()")
        if not all(part.isidentifier() for part in target.split(".")):
            return [literal_node(self.rawtext, self.text, classes=["code"])], []
        found, messages = PyXRefRole()(
            "py:obj", self.rawtext, self.text, self.lineno, self.inliner, self.options, self.content
        )
        for node in found:
            if isinstance(node, pending_xref):
                node["may_be_plain"] = True
        return found, messages


class QualifyErrors(SphinxTransform):
    """Make a bare name that a package's ``errors`` module has mean that one.

    Two packages may have an error of the same name; a docstring means its own package's.
    """

    default_priority = 500

    def apply(self, **_kwargs: Any) -> None:
        """Complete the targets of the page's references."""
        for node in self.document.findall(pending_xref):
            package = (node.get("py:module") or "").partition(".")[0]
            target = node["reftarget"]
            if package and target.isidentifier() and _exists(f"{package}.errors", target):
                node["reftarget"] = f"{package}.errors.{target}"


def resolve(
    _app: Sphinx, _env: BuildEnvironment, node: pending_xref, content: TextElement
) -> Element | None:
    """Return a link to Python's documentation, plain code where that is allowed, or nothing."""
    if node.get("refdomain") != "py":
        return None
    target = _IMPORTED.get(node["reftarget"], node["reftarget"])
    if address := library_address(target):
        return nodes.reference("", "", content, internal=False, refuri=address)
    return content if node.get("may_be_plain") else None


def library_address(target: str) -> str:
    """Return where Python documents a name of its standard library, or an empty string."""
    module, _, name = target.rpartition(".")
    if module.partition(".")[0] not in sys.stdlib_module_names or not _exists(module, name):
        return ""
    return f"{_LIBRARY}/{module}.html#{target}"


def _exists(module: str, name: str) -> bool:
    try:
        found: Any = import_module(module)
    except ImportError:
        return False
    return hasattr(found, name)


def readable(
    _app: Sphinx,
    _kind: str,
    _name: str,
    _found: object,
    _options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write a default that a dataclass makes again each time in a way that Sphinx can parse."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Sphinx) -> None:
    """Register the role, the transform and the resolvers."""
    app.add_role("code-or-link", CodeOrLink())
    app.add_transform(QualifyErrors)
    app.connect("missing-reference", resolve)
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", readable)

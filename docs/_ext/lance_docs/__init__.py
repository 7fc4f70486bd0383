"""The parts of the site that are made from the code while it builds.

Each module here turns one source into directives: the grammar into tables and diagrams, the
ambiguity register into its page, the commands into their reference. Nothing they make is
committed, so nothing on the site can be older than the code beside it.
"""

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from lance_docs import benchmarks, commands, configuration, errors, journal_tables, kit, references
from lance_docs.formats import grammar, register, values, vector_files
from lance_docs.project import changelog, contracts, features, proofs, source_map, tests

_PARTS = (
    benchmarks,
    changelog,
    commands,
    configuration,
    contracts,
    errors,
    features,
    grammar,
    journal_tables,
    kit,
    proofs,
    references,
    register,
    source_map,
    tests,
    values,
    vector_files,
)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register every part with Sphinx."""
    for part in _PARTS:
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

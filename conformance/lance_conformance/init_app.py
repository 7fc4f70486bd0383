"""The command `init`."""

from pathlib import Path

import click

from lance_conformance.engine.run.verdict import Exit
from lance_conformance.skeletons import SKELETONS, write


@click.command()
@click.argument("language", type=click.Choice(list(SKELETONS)))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
def init(language: str, folder: Path) -> int:
    """Write a driver to fill in, so that the kit can ask a client in this language.

    It answers every operation with "unsupported" until it is filled in. FOLDER is the current one
    by default; a file that is there already is never written over.
    """
    for path in write(language, folder):
        click.echo(f"written: {path}")
    skeleton = SKELETONS[language]
    click.echo(f"\nFill in {folder / skeleton.edit}. Then, in {folder.absolute()}:\n")
    if skeleton.build:
        click.echo(f"  {skeleton.build}")
    click.echo(f'  lance-conformance client --exec "{skeleton.run}"')
    return Exit.OK

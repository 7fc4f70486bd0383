"""The command `init`."""

from pathlib import Path

import click

from lance_conformance.engine.run.verdict import Exit
from lance_conformance.skeletons import SKELETONS, write


@click.command()
@click.argument("language", type=click.Choice(list(SKELETONS)))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
def init(language: str, folder: Path) -> int:
    """Write a driver to complete, so that the kit can check a client in this language.

    Until it is completed, it answers every operation with "unsupported". The default FOLDER is the
    current one. Existing files are never overwritten.
    """
    for path in write(language, folder):
        click.echo(f"written: {path}")
    skeleton = SKELETONS[language]
    click.echo(f"\nFill in {folder / skeleton.edit}. Then, in {folder.absolute()}:\n")
    if skeleton.build:
        click.echo(f"  {skeleton.build}")
    click.echo(f'  lance-conformance client --exec "{skeleton.run}"')
    return Exit.OK

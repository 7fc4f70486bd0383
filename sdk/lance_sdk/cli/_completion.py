"""``lwp completion``: what makes a shell complete the commands and options of ``lwp``."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.console.output import print_line

_VARIABLE: Final = "_LWP_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")

_EXAMPLES: Final = """\b
Examples:
  eval "$(lwp completion bash)"                              in ~/.bashrc
  eval "$(lwp completion zsh)"                               in ~/.zshrc
  lwp completion fish > ~/.config/fish/completions/lwp.fish
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(_SHELLS))
@common_options
def completion(shell: str) -> None:
    """Print the script with which a shell completes lwp commands.

    It works with bash from version 4.4 on, zsh, and fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise Failure(f"this version of click cannot complete for {shell}")
    root = click.get_current_context().find_root().command
    try:
        source = kind(root, {}, "lwp", _VARIABLE).source()
    except RuntimeError as error:  # click looks at the version of bash that is installed
        raise Failure(str(error)) from error
    print_line(source.strip())

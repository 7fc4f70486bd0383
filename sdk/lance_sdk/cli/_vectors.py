"""``lwp vectors``: list the test vectors, check them, run them against an SDK of any language."""

import click

from lance_sdk.cli.console.exit_codes import ExitCode


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def vectors(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """List and check the test vectors, or run them against a program (list, check)."""
    # The vectors load every schema and message, which no other command needs.
    from lance_spec.vectors._command import main  # noqa: PLC0415 - only this command needs it

    try:
        ctx.exit(main(arguments or ("--help",), prog="lwp vectors"))
    except SystemExit as stopped:  # what argparse does with --help and wrong usage
        ctx.exit(ExitCode.USAGE if stopped.code else ExitCode.OK)

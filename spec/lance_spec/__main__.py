"""``python -m lance_spec``: regenerate files, explain bytes, check vectors."""

import argparse
import json
import sys
from collections.abc import Sequence

from lance_spec.emit.targets import source_root, stale, targets, write
from lance_spec.explain import Explanation, explain, explain_message


def _emit(options: argparse.Namespace) -> int:
    try:
        folder, wanted = source_root(), targets()
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    changed = stale(folder, wanted) if options.check else write(folder, wanted)
    for path in changed:
        sys.stdout.write(f"{'stale' if options.check else 'written'}: {path}\n")
    if options.check and changed:
        sys.stderr.write("run `python -m lance_spec emit` and commit the result\n")
        return 1
    return 0


def _explained(options: argparse.Namespace, data: bytes) -> Explanation:
    if options.message is None:
        return explain(data)
    return explain_message(options.message, data, options.version)


def _explain(options: argparse.Namespace) -> int:
    try:
        data = bytes.fromhex("".join(options.hex))
    except ValueError as error:
        sys.stderr.write(f"not hexadecimal: {error}\n")
        return 2
    try:
        explanation = _explained(options, data)
    except KeyError as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 2
    if options.json:
        sys.stdout.write(json.dumps(explanation.to_json(), indent=2) + "\n")
    else:
        sys.stdout.write(f"{explanation}\n")
    return 1 if explanation.faults else 0


def _vectors(arguments: Sequence[str]) -> int:
    from lance_spec.vectors._command import main as vectors  # noqa: PLC0415  # needs the test extra

    return vectors(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the process's exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["vectors"]:
        return _vectors(given[1:])
    parser = argparse.ArgumentParser(prog="python -m lance_spec", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    emit = commands.add_parser("emit", help="write the files generated from the grammar")
    emit.add_argument("--check", action="store_true", help="only report files that are stale")
    emit.set_defaults(run=_emit)
    explaining = commands.add_parser("explain", help="name every field of captured bytes")
    explaining.add_argument("hex", nargs="+", help="the bytes in hexadecimal")
    explaining.add_argument("--json", action="store_true", help="print JSON")
    explaining.add_argument(
        "--message",
        metavar="NAME",
        help="read one message of another system: fluvio.ProduceRequest",
    )
    explaining.add_argument(
        "--version", type=int, default=0, help="version of its protocol (default 0)"
    )
    explaining.set_defaults(run=_explain)
    commands.add_parser("vectors", help="list and check the test vectors")
    options = parser.parse_args(given)
    return int(options.run(options))


if __name__ == "__main__":
    raise SystemExit(main())

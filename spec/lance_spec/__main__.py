"""``python -m lance_spec``: regenerate files, explain bytes, check vectors."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lance_spec.emit.targets import source_root, stale, targets, write
from lance_spec.explain import Explanation, explain, explain_message
from lance_spec.vectors import FAMILIES, load, root
from lance_spec.vectors._check import check
from lance_spec.vectors._command import check_program


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


def _vectors_check(options: argparse.Namespace) -> int:
    if options.program is not None:
        return check_program(options.program, options.known, options.timeout)
    try:
        problems = check(root())
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is missing: pip install 'lance-sdk[test]'\n")
        return 2
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    counts = {family: len(load(family).tests) for family in FAMILIES} if not problems else {}
    for family, count in counts.items():
        sys.stdout.write(f"{family}: {count} tests\n")
    return 1 if problems else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the process's exit code."""
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
    vectors = commands.add_parser("vectors", help="work with the test vectors")
    checking = vectors.add_subparsers(dest="action", required=True)
    check_command = checking.add_parser("check", help="check that they are well formed")
    check_command.add_argument(
        "--exec", dest="program", metavar="CMD", help="run them against an adapter instead"
    )
    check_command.add_argument("--known", type=Path, help="JSON file of known differences")
    check_command.add_argument(
        "--timeout", type=float, default=10.0, help="seconds for one answer (default 10)"
    )
    check_command.set_defaults(run=_vectors_check)
    options = parser.parse_args(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    raise SystemExit(main())

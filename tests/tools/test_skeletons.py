"""Drivers to fill in, built and filled in with the tools of their languages."""

import base64
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lance_conformance.skeletons import SKELETONS, write


class Filled(NamedTuple):
    """What a test puts into a skeleton: `send` keeps records, `poll` gives them, `list` fails."""

    program: str
    changes: Sequence[tuple[str, str]]


FILLED: Mapping[str, Filled] = {
    "python": Filled(sys.executable, [
        ('is acknowledged."""\n        raise Unsupported', 'is."""\n        self.kept = records'),
        ('none come in time."""\n        raise Unsupported', 'none."""\n        return self.kept'),
        ('all topics."""\n        raise Unsupported',
         '."""\n        raise Failed("auth", "no \\"é\\"")'),
    ]),
    "node": Filled("node", [
        ("async send (topic, records) { throw new Unsupported() }",
         "async send (topic, records) { this.kept = records }"),
        ("async poll () { throw new Unsupported() }", "async poll () { return this.kept }"),
        ("async listTopics () { throw new Unsupported() }",
         "async listTopics () { throw new Failed('auth', 'no \"é\"') }"),
    ]),
    "go": Filled("go", [
        ("records []Record) error { return ErrUnsupported }",
         "records []Record) error { kept = records; return nil }\n\nvar kept []Record"),
        ("Poll() ([]Record, error) { return nil, ErrUnsupported }",
         "Poll() ([]Record, error) { return kept, nil }"),
        ("ListTopics() ([]Topic, error) { return nil, ErrUnsupported }",
         'ListTopics() ([]Topic, error) { return nil, &Failed{"auth", "no \\"é\\""} }'),
    ]),
    "rust": Filled("cargo", [
        ("records: Vec<Record>) -> Outcome<()> {\n        Err(Unsupported)",
         "records: Vec<Record>) -> Outcome<()> {\n        self.kept = records;\n        Ok(())"),
        ("poll(&mut self) -> Outcome<Vec<Record>> {\n        Err(Unsupported)",
         "poll(&mut self) -> Outcome<Vec<Record>> {\n        Ok(std::mem::take(&mut self.kept))"),
        ("Outcome<Vec<Topic>> {\n        Err(Unsupported)",
         'Outcome<Vec<Topic>> {\nErr(Problem::Failed { kind: "auth", text: "no \\"é\\"".into() })'),
        ("    pub settings: Value,\n", "    pub settings: Value,\n    kept: Vec<Record>,\n"),
        ("Ok(Client { settings })", "Ok(Client { settings, kept: vec![] })"),
    ]),
    "java": Filled("java", [
        ("    private final Map<String, Object> settings;",
         "    private final Map<String, Object> settings;\n    private List<Record> kept;"),
        ("void send(Topic topic, List<Record> records) throws Unsupported, Failed {",
         "void send(Topic t, List<Record> s) throws Unsupported { kept = s;if (s != null) return;"),
        ("poll() throws Unsupported, Failed {\n        throw new Unsupported();",
         "poll() throws Unsupported, Failed {\n        return kept;"),
        ("listTopics() throws Unsupported, Failed {\n        throw new Unsupported();",
         'listTopics() throws Unsupported, Failed {\n throw new Failed("auth", "no \\"é\\"");'),
    ]),
}  # fmt: skip
RECORDS = [
    {"type": 1, "value": base64.b64encode(bytes(range(256))).decode()},
    {"type": 255, "value": ""},
]
TOPIC = {"id": 4_294_967_295, "name": 'kit "ä" \\ topic'}
SETTINGS = {"host": "127.0.0.1", "port": 1, "dialect": "specified", "timeout": 1.5}
WIDE = 2**64 - 1
ASKED: Sequence[dict[str, Any]] = (
    {"op": "juggle"},
    {"op": "poll"},
    {"op": "connect", **SETTINGS, "token": "t"},
    {"op": "connect", **SETTINGS},
    {"op": "send", "topic": TOPIC, "records": RECORDS},
    {"op": "poll"},
    {"op": "list_topics"},
    {"op": "fetch", "topic": TOPIC, "offset": WIDE, "max_bytes": 65536},
    {"op": "set_retention", "topic_id": 7, "max_age_secs": WIDE, "max_bytes": WIDE},
    {"op": "close"},
)
ANSWERED: Sequence[dict[str, Any]] = (
    {"unsupported": True},
    {"unsupported": True},
    {"unsupported": True},
    {"ok": {}},
    {"ok": {}},
    {"ok": {"records": RECORDS}},
    {"error": {"kind": "auth", "text": 'no "é"'}},
    {"unsupported": True},
    {"unsupported": True},
    {"ok": {}},
)


@pytest.mark.parametrize("language", SKELETONS)
def test_a_driver_that_is_filled_in_answers(language: str, tmp_path: Path) -> None:
    """Records, errors, and what is not supported arrive as the kit reads them."""
    filled = FILLED[language]
    if shutil.which(filled.program) is None:
        pytest.skip(f"{filled.program} is not installed")
    write(language, tmp_path)
    file = tmp_path / SKELETONS[language].edit
    text = file.read_text(encoding="utf-8")
    for old, new in filled.changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    if build := SKELETONS[language].build:
        subprocess.run(build, shell=True, cwd=tmp_path, check=True, timeout=600)
    asked = [{"id": number, **each} for number, each in enumerate(ASKED, 1)]
    command = shlex.split(SKELETONS[language].run)
    done = subprocess.run(
        [sys.executable if command[0] == "python" else command[0], *command[1:]],
        cwd=tmp_path,
        input="".join(json.dumps(each) + "\n" for each in asked),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"id": number, **each} for number, each in enumerate(ANSWERED, 1)]

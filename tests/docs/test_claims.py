"""What the pages say of the programs is so."""

import configparser
import re
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from lance_sdk import Client, Consumer, Producer
from lance_server import running
from lance_server.config.settings import ServerConfig
from lance_spec.bodies import decode_error
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command
from lance_spec.frames import Frame, FrameSplitter, encode_control
from lance_spec.ir.families import composed, families

DOCS = Path(__file__).parents[2] / "docs"


def answer(stream: socket.socket, command: int) -> tuple[Command | int, bytes]:
    """Send a command without payload and return the command and payload of its answer."""
    stream.sendall(encode_control(SPECIFIED, command))
    splitter = FrameSplitter((SPECIFIED,))
    frames: list[Frame] = []
    while not frames:
        data = stream.recv(65536)
        assert data, "the server closed the connection"
        frames = splitter.receive_data(data)
        assert splitter.fault is None, splitter.fault
    return frames[0].command, bytes(frames[0].payload)


def refuses_as_unknown(stream: socket.socket, command: int) -> bool:
    """Whether the server has never heard of a command."""
    kind, payload = answer(stream, command)
    return kind == Command.ERROR_RESPONSE and "Unknown command" in decode_error(payload).message


def test_the_commands_that_the_server_does_not_know_are_named() -> None:
    """The wire page names every command of the grammar that this server refuses as unknown."""
    said = re.search(
        r"server refuses (.+?), as unknown", (DOCS / "wire.rst").read_text(), re.DOTALL
    )
    assert said is not None
    named = set(re.findall(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+", said[1]))
    asked = {
        each.name: each.command
        for each in (*families()["lwp"].messages, *composed()["groups"].messages)
        if each.command is not None and each.sender == "client"
    }
    with running() as server, socket.create_connection(server.address, timeout=10) as stream:
        refused = {name for name, code in asked.items() if refuses_as_unknown(stream, code)}
    assert named == refused


def test_no_format_is_shown_twice() -> None:
    """What the page about the disk shows is left out of the page with all other formats."""
    ahead = (DOCS / "formats.rst").read_text()
    left_out = {name for names in re.findall(r":except: (.+)", ahead) for name in names.split()}
    shown = set(re.findall(r"lance-message:: (\w+)", (DOCS / "disk.rst").read_text()))
    assert shown == left_out


def test_the_security_page_denies_no_protection_that_the_server_has() -> None:
    """TLS, tokens and rules are settings of the server, and the security page names each."""
    page = (DOCS.parent / "SECURITY.md").read_text()
    words = {"tls": "TLS", "auth": "tokens", "access": "rules for clients and topics"}
    assert words.keys() <= {setting.name for setting in fields(ServerConfig)}
    assert [word for word in words.values() if word not in page] == []
    assert "neither TLS" not in page


def test_without_settings_every_client_may_do_everything() -> None:
    """As the security page warns: no certificate, no token, every topic."""
    page = " ".join((DOCS.parent / "SECURITY.md").read_text().split())
    assert "every client that reaches the port may read, write and delete every topic" in page
    with running() as server, Client(server.url) as anyone:
        anyone.create_topic("orders")
        with Producer(f"{server.url}/orders") as producer:
            producer.send(b"one").result()
        with Consumer(f"{server.url}/orders", stop_at_end=True) as consumer:
            assert [record.value for record in consumer] == [b"one"]
        anyone.delete_topic("orders")
        assert "orders" not in {topic.name for topic in anyone.list_topics()}


CONTRIBUTING = (DOCS.parent / "CONTRIBUTING.md").read_text()


def test_the_files_that_contributing_names_are_there() -> None:
    """From the root, from the folder that a section is about, or inside it."""
    root, missing = DOCS.parent, []
    for section in re.split(r"^### ", CONTRIBUTING, flags=re.MULTILINE):
        about = re.match(r"`([\w/]+)`", section)
        folder = root / about[1] if about else root
        for name in re.findall(r"`([\w./]+(?:/|\.py|\.toml))`", section):
            places = (root / name, folder / name, folder.parent / name)
            if not any(place.exists() for place in places) and not [*folder.rglob(name)]:
                missing.append(name)
    assert missing == []


def test_the_environments_that_contributing_names_are_there() -> None:
    """Each one behind `tox run -e`, and in the list of those that run when asked for."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(DOCS.parent / "tox.ini")
    known = {name.removeprefix("testenv:") for name in settings.sections()}
    known |= {*re.split(r"[\s,]+", settings["tox"]["env_list"].strip())}
    asked = re.search(
        r"^These run only when you name them: (.+?), and others", CONTRIBUTING, re.MULTILINE
    )
    assert asked is not None
    named = {
        *re.findall(r"`([\w-]+)`", asked[1]),
        *re.findall(r"tox run -e ([\w-]+)", CONTRIBUTING),
    }
    assert named - known == set()


def test_the_commands_that_contributing_names_have_these_options() -> None:
    """Their help shows each of them."""
    ours = re.findall(r"`(lance-conformance selftest|python -m bench)([^`]*)`", CONTRIBUTING)
    named = {(command, option) for command, rest in ours for option in re.findall(r"--\w+", rest)}
    assert len(named) > 1
    for command in {command for command, _ in named}:
        program = command.replace("lance-conformance", "python -m lance_conformance").split()
        run = [sys.executable, *program[1:], "--help"]
        shown = subprocess.run(run, cwd=DOCS.parent, capture_output=True, text=True, check=True)
        assert {option for each, option in named if each == command} <= {
            *re.findall(r"--\w+", shown.stdout)
        }


def test_the_readme_counts_the_vectors() -> None:
    """To the next lower hundred or so: it says how many there are, not when each was added."""
    said = re.search(r"([\d,]+) test vectors", (DOCS.parent / "README.md").read_text())
    assert said is not None
    counted = int(said[1].replace(",", ""))
    there = len((DOCS.parent / "vectors" / "ids.lock").read_text().splitlines())
    assert counted <= there < counted + 300

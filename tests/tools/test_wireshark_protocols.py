"""Dissectors of other systems' protocols on connections, in the real tshark."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_spec.dialect import SPECIFIED
from lance_spec.emit.wireshark import dissector, nested_dissector
from lance_spec.enums import Command
from lance_spec.fluvio.apis import APIS, PORTS
from lance_spec.frames import encode_control
from lance_spec.ir.families import composed, families
from lance_spec.messages import fluvio, groups, qwp, rustlog

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _captures import UPGRADE, dialogue, web_socket, write_pcap

CLIENT = 40000
Turns = list[tuple[bool, bytes]]
Dissect = Callable[..., list[tuple[str, str]]]

QWP_MESSAGE = bytes.fromhex(
    "51575031 01 08 0100 27000000 00 01 02 4130 01 74 01 03 03 73796d 09 01 76 05 00 0a"
    " 00 00 00 0000000000000000 00 00401e18240a0600"
)
"""What a published sender sent for one row."""


@pytest.fixture
def dissect(tshark: str, tmp_path: Path) -> Dissect:
    """What tshark shows of each packet: the summary, and its complaints."""

    def dissected(family: str, port: int, turns: Turns) -> list[tuple[str, str]]:
        scripts = []
        for name in ("lwp", "groups") if family == "lwp" else (family,):
            scripts.append(tmp_path / f"lance_{name}.lua")
            text = (
                dissector.render(families()[name])
                if name in families()
                else nested_dissector.render(composed()[name])
            )
            scripts[-1].write_text(text)
        capture = tmp_path / "capture.pcap"
        write_pcap(capture, dialogue(CLIENT, port, turns))
        arguments = [tshark, "-r", str(capture)]
        arguments += [part for each in scripts for part in ("-X", f"lua_script:{each}")]
        arguments += ["-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.expert.message"]
        finished = subprocess.run(
            arguments, capture_output=True, text=True, check=True, timeout=100
        )
        assert "Lua" not in finished.stderr, finished.stderr
        lines = [line.split("\t") for line in finished.stdout.splitlines()]
        return [(info, _ours(text)) for info, text in lines]

    return dissected


def _ours(text: str) -> str:
    """Complaints but those of TCP about neighbours that were not captured."""
    return ",".join(each for each in text.split(",") if not each.startswith("TCP"))


def framed(body: bytes) -> bytes:
    """A frame of Fluvio or RustLog."""
    return struct.pack(">I", len(body)) + body


def request(key: int, version: int, number: int, body: bytes) -> bytes:
    """A request of a Fluvio client."""
    header = fluvio.Request(
        api_key=key, api_version=version, correlation_id=number, client_id="c", body=body
    )
    return framed(header.encode())


def response(number: int, body: bytes) -> bytes:
    """A response of a Fluvio server."""
    return framed(fluvio.Response(correlation_id=number, body=body).encode())


ASKED = fluvio.ApiVersionsRequest(client_version="1", client_os="o", client_arch="a").encode()
RANGE = fluvio.ApiVersionRange(api_key=0, min_version=0, max_version=25)
ANSWERED = fluvio.ApiVersionsResponse(
    error_code=0, api_keys=[RANGE], platform_version="0.17.3"
).encode()
OFFSETS = fluvio.FetchOffsetsRequest(
    topics=[fluvio.OffsetsTopic(topic="t", partitions=[0])], consumer_id="me"
).encode(23)
WATCH = fluvio.WatchRequest(object_type="Topic", watch=fluvio.Watch(epoch=0, summary=False))
TOPICS = fluvio.WatchTopicResponse(update=fluvio.TopicUpdate(epoch=1, changes=[], all=[]))


def test_fluvio_responses_are_read_as_their_requests_were(dissect: Dissect) -> None:
    """FLV-01: key and version of a response stand in the request of its number."""
    turns = [
        (True, request(18, 2, 1, ASKED)),
        (False, response(1, ANSWERED)),
        (True, request(1002, 23, 1, OFFSETS)),
        (False, response(1, fluvio.FetchOffsetsResponse(topics=[]).encode())),
    ]
    assert dissect("fluvio", PORTS["spu"], turns) == [
        (" ApiVersions v2", ""),
        (" ApiVersions response", ""),
        (" FetchOffsets v23", ""),
        (" FetchOffsets response", ""),
    ]


def test_fluvio_objects_are_read_by_their_type(dissect: Dissect) -> None:
    """FLV-01: a watch of topics is answered with topics, several times."""
    pushed = response(3, TOPICS.encode(19))
    turns = [(True, request(1004, 19, 3, WATCH.encode(19))), (False, pushed), (False, pushed)]
    assert dissect("fluvio", PORTS["sc"], turns) == [
        (" Watch v19", ""),
        (" Watch response", ""),
        (" Watch response", ""),
    ]


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        (request(18, 2, 1, ASKED[:-1]), "ApiVersionsRequest.client_arch needs 1 bytes, 0 left"),
        (request(18, 2, 1, ASKED + b"x"), "1 bytes after api_versions_request"),
        (request(4242, 2, 1, b""), "No rule for api_key 4242"),
        (framed(b"\0"), "Request.api_key needs 2 bytes, 1 left"),
        (b"\xff\xff\xff\xff", "Frame.length -1 is none"),
    ],
)
def test_faults_of_fluvio_are_named(turn: bytes, complaint: str, dissect: Dissect) -> None:
    """The field that does not fit is said."""
    ((_, text),) = dissect("fluvio", PORTS["spu"], [(True, turn)])
    assert text.replace("_", "").lower() == complaint.replace("_", "").lower()


def test_every_request_of_fluvio_has_messages() -> None:
    """FLV-01: what the table of requests names, the grammar declares."""
    for each in APIS:
        for name in (each.request, *each.responses.values()):
            assert composed()["fluvio"].message(name)


PING = framed(rustlog.Ping().encode())
PRODUCE = framed(rustlog.ProduceRequest(topic="t", partition=0, records=[b"r"]).encode())


def test_both_dialects_of_rustlog_are_shown(dissect: Dissect) -> None:
    """RL-01: a brace opens a message of the JSON dialect, any other byte is a type."""
    done = framed(rustlog.ProduceResponse(base_offset=0, record_count=1).encode())
    turns = [
        (True, PING),
        (False, PING),
        (True, PRODUCE),
        (False, done),
        (True, framed(b'{"ListTopics":{}}')),
    ]
    assert dissect("rustlog", nested_dissector.RUSTLOG_PORT, turns) == [
        (" ping", ""),
        (" ping", ""),
        (" produce_request", ""),
        (" produce_response", ""),
        (" JSON request, JavaScript Object Notation", ""),
    ]


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        (framed(b"\x0b"), "No message of type 11"),
        (framed(PRODUCE[4:-1]), "produce_request.records needs 1 bytes, 0 left"),
        (bytes(4), "Frame.length must be 1 to 10485760"),
        (framed(b"\xfe\0\1\0\1\xff"), "No message of type 254"),
    ],
)
def test_faults_of_rustlog_are_named(turn: bytes, complaint: str, dissect: Dissect) -> None:
    """Types, lengths and fields are judged."""
    ((_, text),) = dissect("rustlog", nested_dissector.RUSTLOG_PORT, [(True, turn)])
    assert text == complaint


def upgraded(*turns: tuple[bool, bytes]) -> Turns:
    """A connection that became a WebSocket and carries QWP."""
    return [
        (True, UPGRADE[0]),
        (False, UPGRADE[1]),
        *((asks, web_socket(each, masked=asks)) for asks, each in turns),
    ]


def test_qwp_is_found_inside_web_sockets(dissect: Dissect) -> None:
    """Messages of senders and answers of servers, after the upgrade."""
    taken = qwp.OkResponse(wire_sequence=0, tables=[]).encode()
    refused = qwp.ErrorResponse(status=5, wire_sequence=0, text=b"no").encode()
    seen = dissect(
        "qwp",
        nested_dissector.QWP_PORT,
        upgraded((True, QWP_MESSAGE), (False, taken), (False, refused)),
    )
    assert [text for _, text in seen[2:]] == ["", "", ""]
    assert [info for info, _ in seen[2:]] == [
        "QWP message",
        "QWP ok_response",
        "QWP error_response",
    ]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (QWP_MESSAGE[:6] + b"\2" + QWP_MESSAGE[7:], "QwpMessage.table_count is not 1"),
        (b"QWP2" + QWP_MESSAGE[4:], "qwp_message.magic must be 51575031"),
        (QWP_MESSAGE[:-1], "qwp_message.payload needs 39 bytes, 38 left"),
        (QWP_MESSAGE.replace(b"v\x05", b"v\x08"), "column_definition.type has no rule for 8"),
    ],
)
def test_faults_of_qwp_are_named(message: bytes, complaint: str, dissect: Dissect) -> None:
    """Header, tables and columns are judged."""
    seen = dissect("qwp", nested_dissector.QWP_PORT, upgraded((True, message)))
    assert complaint in seen[-1][1]


def test_commands_of_groups_are_read_inside_their_frames(dissect: Dissect) -> None:
    """AMB-38: the dissector of frames hands the payload to that of groups."""
    sync = groups.GroupSync(group="g", member="m", generation=1, owned=[7]).encode()
    turns = [
        (True, encode_control(SPECIFIED, Command.GROUP_SYNC, sync)),
        (True, encode_control(SPECIFIED, Command.GROUP_SYNC, sync[:-1])),
    ]
    assert dissect("lwp", 1992, turns) == [
        ("GROUP_SYNC", ""),
        ("GROUP_SYNC", "group_sync.owned 1 values do not fit into 3 bytes"),
    ]

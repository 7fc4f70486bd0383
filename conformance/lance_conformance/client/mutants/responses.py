"""Clients that are wrong about what answers say."""

import json
import struct
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Body, ProblemError
from lance_conformance.client.mutants.registry import golden, mutant


@mutant(Specified.answers)
def takes_any_answer(_client: Specified, _wanted: int, _command: int, /) -> bool:
    """Whatever command comes answers the request."""
    return True


@mutant(Specified.body)
def takes_garbage_for_an_empty_object(client: Specified, payload: bytes, /) -> Body:
    """An answer that is not a JSON object is an empty one."""
    try:
        return golden(client).body(payload)
    except ProblemError:
        return {"id": 0, "name": "", "topics": []}


@mutant(Specified.body)
def refuses_unknown_fields(client: Specified, payload: bytes, /) -> Body:
    """An answer may have the fields that are known, and no others."""
    body = golden(client).body(payload)
    if body.keys() - {"id", "name", "created_at", "topics", "deleted", "topic_id", "max_age_secs"}:
        raise ProblemError("protocol", "unknown fields")
    return body


@mutant(Specified.body)
def reads_json_by_position(client: Specified, payload: bytes, /) -> Body:
    """The answer must be spelled as one server spells it."""
    if not payload.startswith((b'{"id": ', b'{"topics": ', b'{"deleted"', b'{"topic_id"')):
        raise ProblemError("protocol", "not the JSON that was expected")
    return golden(client).body(payload)


@mutant(Specified.body)
def does_not_unescape(client: Specified, payload: bytes, /) -> Body:
    """Escapes in strings are left as they are."""
    return golden(client).body(payload.replace(b"\\", b"\\\\"))


@mutant(Specified.body)
def has_a_small_buffer_for_json(client: Specified, payload: bytes, /) -> Body:
    """An answer of more than 16 KiB is cut."""
    return golden(client).body(payload[:16_384])


@mutant(Specified.topic_of)
def takes_any_id(_client: Specified, body: Body, /) -> Body:
    """The id of a topic may be anything, or missing."""
    return {"id": body.get("id", 0), "name": str(body.get("name"))}


@mutant(Specified.topic_of)
def takes_any_name(client: Specified, body: Body, /) -> Body:
    """The name of a topic may be anything, or missing, as in the published Python client."""
    return golden(client).topic_of({**body, "name": str(body.get("name", ""))})


@mutant(Specified.topic_of)
def numbers_topics_from_one(client: Specified, body: Body, /) -> Body:
    """The id of a topic is one more than the server says."""
    topic = golden(client).topic_of(body)
    return {**topic, "id": topic["id"] + 1}


def _refuses_ids(title: str, name: str, beyond: int) -> None:
    def replacement(client: Specified, body: Body, /) -> Body:
        topic = golden(client).topic_of(body)
        if topic["id"] > beyond:
            raise ProblemError("protocol", f"the topic's id is {topic['id']}")
        return topic

    replacement.__name__, replacement.__doc__ = name, title
    mutant(Specified.topic_of, asked=("wide/told-id-*",))(replacement)


_refuses_ids("Ids of topics have 16 bits.", "takes_ids_of_topics_for_shorts", 2**16 - 1)
_refuses_ids("Ids of topics have a sign.", "takes_ids_of_topics_for_signed", 2**31 - 1)
_refuses_ids(
    "The highest id of a topic stands for none.", "takes_the_highest_id_for_none", 2**32 - 2
)


@mutant(Specified.topics_of)
def takes_any_list(client: Specified, body: Body, /) -> list[Body]:
    """Topics that are none are passed over."""
    topics: Any = body.get("topics")
    found = []
    for each in topics if isinstance(topics, list) else []:
        try:
            found.append(golden(client).topic_of(each if isinstance(each, dict) else {}))
        except ProblemError:
            continue
    return found


@mutant(Specified.topics_of)
def lists_no_more_than_a_hundred(client: Specified, body: Body, /) -> list[Body]:
    """A list ends after a hundred topics."""
    return golden(client).topics_of(body)[:100]


@mutant(Specified.topics_of)
def lists_nothing(client: Specified, body: Body, /) -> list[Body]:
    """A list is empty whatever it has."""
    return golden(client).topics_of(body)[:0]


@mutant(Specified.found)
def takes_any_topic(_client: Specified, topic: Body, _topic_id: int, /) -> Body:
    """The answer to GetTopic may be about another topic."""
    return topic


@mutant(Specified.about, asked=("admin/delete-of-another", "admin/retention-of-another"))
def takes_answers_about_other_topics(
    _client: Specified, _body: Body, _field: str, _topic_id: int, /
) -> None:
    """The answers to DeleteTopic and SetRetention may be about another topic."""


@mutant(Specified.about, asked=("admin/retention-of-another",))
def takes_retention_of_other_topics(
    client: Specified, body: Body, field: str, topic_id: int, /
) -> None:
    """The answer to SetRetention may be about another topic."""
    if field == "deleted":
        golden(client).about(body, field, topic_id)


@mutant(Specified.topics_of)
def leaves_out_long_names(client: Specified, body: Body, /) -> list[Body]:
    """Topics whose names are longer than 128 bytes are not listed."""
    return [each for each in golden(client).topics_of(body) if len(each["name"]) <= 128]


@mutant(Specified.answers)
def takes_a_status_for_topics(client: Specified, wanted: int, command: int, /) -> bool:
    """The answer to GetClusterStatus is taken for one about topics."""
    return golden(client).answers(wanted, command) or (wanted, command) == (0x80, 0x81)


@mutant(Specified.error)
def dies_of_errors_that_are_no_json(_client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
    """An error that is not a JSON object with all fields ends the program."""
    body = json.loads(payload)
    return int(body["code"]), body["message"] + "", body.get("details", {}).copy()


@mutant(Specified.error)
def takes_errors_for_silence(_client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
    """Whatever an error says, it is treated like no answer."""
    return -1, payload.decode(errors="replace"), {}


def _cuts_codes(code: int, name: str) -> None:
    def replacement(client: Specified, said: int, /) -> str:
        return golden(client).kind_of(said & 0xFF if said == code else said)

    replacement.__name__ = name
    replacement.__doc__ = f"The error {code:#x} is taken for {code & 0xFF:#x}."
    mutant(Specified.kind_of, only="specified", asked=(f"code/{code:03x}",))(replacement)


_cuts_codes(0x120, "takes_an_unknown_code_for_a_redirect")
_cuts_codes(0x130, "takes_an_unknown_code_for_a_limit_of_rate")
_cuts_codes(0x141, "takes_an_unknown_code_for_a_wrong_token")


@mutant(Specified.kind_of)
def tells_silence_as_timeout(client: Specified, code: int, /) -> str:
    """Errors that are not understood are told as a timeout."""
    return "timeout" if code in (0x01, 0x04, 0x10, 70_000, -1) else golden(client).kind_of(code)


@mutant(Specified.kind_of)
def calls_everything_fatal(_client: Specified, _code: int, /) -> str:
    """Every error is fatal."""
    return "fatal"


@mutant(Specified.kind_of)
def calls_everything_retriable(_client: Specified, _code: int, /) -> str:
    """Every error may go away by itself."""
    return "retriable"


@mutant(Specified.kind_of)
def calls_everything_auth(_client: Specified, _code: int, /) -> str:
    """Every error is about credentials."""
    return "auth"


@mutant(Specified.shown)
def shows_the_token(_client: Specified, text: str, _token: str | None, /) -> str:
    """What the server says is shown as it is."""
    return text


@mutant(Specified.subscribed, only="specified")
def takes_any_subscribe_ack(_client: Specified, payload: bytes, _consumer: int, /) -> int:
    """A SubscribeAck is believed whoever it is for, and however long it is."""
    return int.from_bytes(payload[8:16], "little")


@mutant(Specified.is_ours, only="specified")
def takes_pushes_of_any_topic(_client: Specified, _topic: int, _frame: object, /) -> bool:
    """A push is taken whatever topic it is of."""
    return True


@mutant(Specified.committed)
def takes_any_commit_ack(
    _client: Specified, _payload: bytes, _consumer: int, _offset: int, /
) -> None:
    """A CommitAck is believed whatever it says."""


@mutant(Specified.commit)
def commits_one_less(client: Specified, topic: int, consumer: int, offset: int, /) -> bytes:
    """The committed offset is one less than was asked for."""
    return golden(client).commit(topic, consumer, offset - 1)


@mutant(Specified.admitted)
def takes_any_admission(_client: Specified, _payload: bytes, /) -> None:
    """The answer to a token is not looked at."""


@mutant(Specified.hello)
def never_presents_the_token(_client: Specified, _token: str | None, /) -> bytes | None:
    """A token is not presented."""
    return None


@mutant(Specified.hello)
def always_presents_a_token(_client: Specified, token: str | None, /) -> bytes | None:
    """A token is presented even where there is none."""
    return (token or "").encode()


@mutant(Specified.hello)
def presents_the_token_as_json(_client: Specified, token: str | None, /) -> bytes | None:
    """The token is wrapped in JSON."""
    return None if token is None else json.dumps({"token": token}).encode()


@mutant(Specified.subscribe, only="specified")
def subscribes_to_another_topic(
    client: Specified, topic: int, offset: int, size: int, consumer: int, /
) -> bytes:
    """The consumer stands in front of the topic."""
    del offset
    return struct.pack("<QIQI", consumer, topic, 0, size) if client.pushes() else b""

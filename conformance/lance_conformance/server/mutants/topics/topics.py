"""Servers that are wrong about topics and control commands."""

import json

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic
from lance_conformance.server.mutants.registry import golden, mutant


@mutant(Specified.error, only="specified")
def writes_errors_as_text(
    _server: Specified, _code: int, words: str, _details: dict[str, object], /
) -> Reply:
    """Errors are plain text."""
    return Reply(0x40, 0xFF, words.encode())


@mutant(Specified.error, only="specified")
def writes_error_codes_as_text(
    _server: Specified, code: int, words: str, _details: dict[str, object], /
) -> Reply:
    """The code of an error is a string."""
    return Reply(0x40, 0xFF, json.dumps({"code": f"{code:#x}", "message": words}).encode())


@mutant(Specified.error, only="specified")
def writes_errors_without_a_message(
    _server: Specified, code: int, _words: str, details: dict[str, object], /
) -> Reply:
    """Errors have a code and nothing for people."""
    return Reply(0x40, 0xFF, json.dumps({"code": code, "details": details}).encode())


@mutant(Specified.error, only="deployed")
def writes_errors_as_json(
    _server: Specified, code: int, words: str, _details: dict[str, object], /
) -> Reply:
    """Errors are JSON, which published clients show as it is."""
    return Reply(0x40, 0xFF, json.dumps({"code": code, "message": words}).encode())


@mutant(Specified.name_of, only="specified")
def replaces_bad_utf8(_server: Specified, raw: bytes, /) -> str:
    """Names that are not UTF-8 are repaired."""
    return raw.decode(errors="replace")


@mutant(Specified.name_of, only="specified")
def reads_names_as_latin_1(_server: Specified, raw: bytes, /) -> str:
    """Names are read in another encoding."""
    return raw.decode("latin-1").replace("\x82", "").replace("\x84", "")


@mutant(Specified.name_of)
def cuts_names_to_64_bytes(_server: Specified, raw: bytes, /) -> str:
    """Names are cut without a word."""
    return raw[:64].decode(errors="ignore")


@mutant(Specified.empty_name_ok)
def accepts_empty_names(_server: Specified) -> bool:
    """A topic may have no name."""
    return True


@mutant(Specified.name_length_ok)
def accepts_names_of_any_length(_server: Specified, _raw: bytes, /) -> bool:
    """Names have no limit."""
    return True


@mutant(Specified.name_length_ok)
def refuses_names_of_255_bytes(_server: Specified, raw: bytes, /) -> bool:
    """The limit is one byte too low."""
    return len(raw) < 255


@mutant(Specified.name_length_ok, only="specified")
def counts_characters_of_names(_server: Specified, raw: bytes, /) -> bool:
    """The limit of 255 counts characters."""
    return len(raw.decode(errors="replace")) <= 255


@mutant(Specified.name_characters_ok)
def accepts_any_character(_server: Specified, _name: str, /) -> bool:
    """Names may have any character."""
    return True


@mutant(Specified.name_characters_ok)
def accepts_slashes(server: Specified, name: str, /) -> bool:
    """Names may have slashes, which become folders."""
    return golden(server).name_characters_ok(name.replace("/", ""))


@mutant(Specified.name_characters_ok)
def stops_at_nul(server: Specified, name: str, /) -> bool:
    """Only the part of a name before a NUL is looked at."""
    return golden(server).name_characters_ok(name.partition("\0")[0])


@mutant(Specified.spelling, only="specified")
def tells_spellings_apart(_server: Specified, name: str, /) -> str:
    """Two spellings of one name are two names."""
    return name


@mutant(Specified.taken_by)
def lets_names_be_shared(_server: Specified, _name: str, /) -> Topic | None:
    """Several topics may have one name."""
    return None


@mutant(Specified.duplicate)
def answers_with_the_topic_that_exists(_server: Specified, topic: Topic, /) -> Topic:
    """Creating a topic again answers as if it were new."""
    return topic


@mutant(Specified.duplicate, only="specified")
def calls_a_duplicate_an_unknown_error(_server: Specified, _topic: Topic, /) -> Topic:
    """A name that is taken is UnknownError."""
    raise Refused(0x01, "no")


@mutant(Specified.listed)
def begins_again_without_topics(server: Specified, /) -> list[Body]:
    """A list without topics makes ids begin again, as at a published server."""
    if not server.memory.topics:
        server.memory.last_id = 0
    return golden(server).listed()


@mutant(Specified.next_id)
def gives_ids_away_again(server: Specified) -> int:
    """A new topic gets the lowest id that is free."""
    return next(i for i in range(1, 2**32) if i not in server.memory.topics)


@mutant(Specified.first_log)
def begins_topics_with_a_header(_server: Specified, _name: str, /) -> bytes:
    """A new topic has a file header in its log."""
    return b"\x02\x04\0\0\0LNC1"


@mutant(Specified.created_body)
def creates_without_a_name(server: Specified, topic: Topic, /) -> Body:
    """CreateTopic answers without the name."""
    return {key: v for key, v in golden(server).created_body(topic).items() if key != "name"}


@mutant(Specified.created_body)
def writes_the_creation_time_as_text(server: Specified, topic: Topic, /) -> Body:
    """The creation time is a date, not a number."""
    return {**golden(server).created_body(topic), "created_at": "2024-02-03T00:00:00Z"}


@mutant(Specified.created_body)
def creates_with_a_false_id(server: Specified, topic: Topic, /) -> Body:
    """CreateTopic answers with an id that is one too high."""
    return {**golden(server).created_body(topic), "id": topic.id + 1}


@mutant(Specified.found_body)
def finds_without_a_creation_time(_server: Specified, topic: Topic, /) -> Body:
    """GetTopic and ListTopics leave out the creation time."""
    return {"id": topic.id, "name": topic.name}


@mutant(Specified.find)
def finds_the_newest_topic(server: Specified, topic_id: int, /) -> Topic:
    """GetTopic always finds the topic that was created last."""
    golden(server).find(topic_id)
    return server.memory.topics[max(server.memory.topics)]


@mutant(Specified.find)
def finds_every_topic(server: Specified, topic_id: int, /) -> Topic:
    """GetTopic finds topics that do not exist."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.listed)
def lists_no_topics(_server: Specified) -> list[Body]:
    """ListTopics brings an empty list."""
    return []


@mutant(Specified.listed)
def lists_topics_twice(server: Specified) -> list[Body]:
    """ListTopics shows every topic twice."""
    return golden(server).listed() * 2


@mutant(Specified.listed)
def lists_the_default_topic(server: Specified) -> list[Body]:
    """ListTopics shows topic 0."""
    return [{"id": 0, "name": "default", "created_at": 0}, *golden(server).listed()]


@mutant(Specified.list_body)
def lists_under_another_key(_server: Specified, topics: list[Body], /) -> Body:
    """ListTopics brings its list as 'items'."""
    return {"items": topics}


@mutant(Specified.default_topic, only="specified")
def does_not_know_the_default_topic(_server: Specified) -> Topic:
    """GetTopic 0 is refused."""
    raise Refused(0x10, "Topic not found")


@mutant(Specified.default_topic)
def calls_the_default_topic_0(_server: Specified) -> Topic:
    """Topic 0 has another name."""
    return Topic(0, "0")


@mutant(Specified.find_to_delete)
def deletes_what_is_not_there(server: Specified, topic_id: int, /) -> Topic:
    """DeleteTopic succeeds for topics that do not exist."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.forget)
def only_pretends_to_delete(_server: Specified, _topic: Topic, /) -> None:
    """DeleteTopic answers and does nothing."""


@mutant(Specified.forget)
def deletes_the_name_and_keeps_the_topic(_server: Specified, topic: Topic, /) -> None:
    """A deleted topic is renamed, and served as before under its id."""
    topic.name = f"deleted-{topic.id}"


@mutant(Specified.deleted_body)
def says_true_for_deleted(_server: Specified, _topic_id: int, /) -> Body:
    """DeleteTopic answers that it did so, not which topic."""
    return {"deleted": True}


@mutant(Specified.limits_kept)
def forgets_limits(_server: Specified, _topic: Topic, _limits: tuple[int, int], /) -> None:
    """Retention limits are read and dropped."""


@mutant(Specified.limits_kept)
def swaps_limits(_server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    """Age and size are taken for each other."""
    topic.limits = limits[1], limits[0]


@mutant(Specified.find_to_limit)
def limits_what_is_not_there(server: Specified, topic_id: int, /) -> Topic:
    """SetRetention succeeds for topics that do not exist."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.limited_body)
def creates_limits_in_silence(server: Specified, topic: Topic, /) -> Body:
    """CreateTopicWithRetention does not say which limits hold."""
    return server.created_body(topic)


@mutant(Specified.set_body)
def sets_without_naming_the_topic(server: Specified, topic: Topic, /) -> Body:
    """SetRetention answers with 'id' in place of 'topic_id'."""
    body = golden(server).set_body(topic)
    return {"id": body.pop("topic_id"), **body}


@mutant(Specified.name_length)
def reads_32_bits_of_name_length(_server: Specified, payload: bytes, /) -> tuple[int, int]:
    """The name length of CreateTopicWithRetention is read from 32 bits."""
    return int.from_bytes(payload[:4], "little"), 4


@mutant(Specified.limits_ok)
def fills_up_short_limits(_server: Specified, _payload: bytes, _name_end: int, /) -> bool:
    """Whatever is missing from CreateTopicWithRetention is taken for zeros."""
    return True


@mutant(Specified.set_size_ok)
def fills_up_short_set_retention(_server: Specified, _size: int, /) -> bool:
    """Whatever is missing from SetRetention is taken for zeros."""
    return True


@mutant(Specified.get_size_ok, only="specified")
def takes_any_size_of_get_topic(_server: Specified, _size: int, /) -> bool:
    """Missing bytes of GetTopic are zeros, extra ones ignored."""
    return True


@mutant(Specified.get_size_ok, only="specified")
def ignores_trailing_bytes_of_get_topic(_server: Specified, size: int, /) -> bool:
    """Extra bytes of GetTopic are ignored."""
    return size >= 4


@mutant(Specified.get_size_ok, only="deployed")
def demands_4_bytes_of_get_topic(_server: Specified, size: int, /) -> bool:
    """GetTopic must have 4 bytes, which the published server does not ask for."""
    return size == 4


@mutant(Specified.command_of, only="specified")
def looks_at_one_byte_of_the_command(_server: Specified, batch_id: int, /) -> int:
    """The command is the lowest byte of the Batch ID."""
    return batch_id & 0xFF


@mutant(Specified.command_of, only="deployed")
def looks_at_the_whole_command(_server: Specified, batch_id: int, /) -> int:
    """The command is the whole Batch ID, unlike in the published server."""
    return batch_id


@mutant(Specified.unknown_command)
def passes_over_unknown_commands(_server: Specified, _command: int, /) -> Replies:
    """A command that nobody defines is not answered."""
    return []


@mutant(Specified.unknown_command)
def agrees_to_unknown_commands(_server: Specified, _command: int, /) -> Replies:
    """A command that nobody defines is answered as if it had been carried out."""
    return [Reply(0x40, 0x80, b"{}")]


@mutant(Specified.server_command)
def echoes_server_commands(_server: Specified, command: int, /) -> Replies:
    """A command that only servers send is sent back."""
    return [Reply(0x40, command, b"{}")]

"""Servers that are wrong about the life and the names of topics."""

from collections.abc import Callable, Collection

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Topic
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden, mutant


@mutant(Specified.found_body)
def dates_topics_anew(server: Specified, topic: Topic, /) -> Body:
    """Every answer about a topic has a later creation time."""
    server.memory.clock += 1_000_000_000
    return {**golden(server).found_body(topic), "created_at": server.memory.clock // 10**9}


@mutant(Specified.created_body)
def gives_an_id_twice(server: Specified, topic: Topic, /) -> Body:
    """The third topic that a connection creates is given the id of the second."""
    notes = server.memory.speaker.notes
    notes.add(f"created {topic.id}")
    body = golden(server).created_body(topic)
    return {**body, "id": topic.id - 1} if len(notes) == 3 else body


@mutant(Specified.find)
def finds_topics_of_its_own_connection(server: Specified, topic_id: int, /) -> Topic:
    """GetTopic finds topics that were created on the same connection."""
    topic = golden(server).find(topic_id)
    if topic.made_by is not server.memory.speaker:
        raise Refused(0x10, "Topic not found")
    return topic


@mutant(Specified.find)
def remembers_what_it_found(server: Specified, topic_id: int, /) -> Topic:
    """A topic that a connection has found once is there for it for ever."""
    notes = server.memory.speaker.notes
    if f"found {topic_id}" in notes and topic_id not in server.memory.topics:
        return Topic(topic_id, f"topic {topic_id}")
    notes.add(f"found {topic_id}")
    return golden(server).find(topic_id)


@mutant(Specified.forget)
def deletes_the_records_of_all(server: Specified, topic: Topic, /) -> None:
    """With a topic the records of all others go."""
    golden(server).forget(topic)
    for other in server.memory.topics.values():
        other.log = b""


@mutant(Specified.taken_by)
def notices_names_of_its_own_connection(server: Specified, name: str, /) -> Topic | None:
    """A name is taken only for the connection that took it."""
    taken = golden(server).taken_by(name)
    return taken if taken and taken.made_by is server.memory.speaker else None


@mutant(Specified.listed)
def lists_three_topics(server: Specified) -> list[Body]:
    """ListTopics stops at three topics, the newest ones."""
    return golden(server).listed()[-3:]


@mutant(Specified.epoch_of, only="specified")
def counts_no_epochs(_server: Specified, _name: str, /) -> int:
    """topic_epoch is always 1."""
    return 1


@mutant(Specified.epoch_of, only="specified", asked=("top/*",))
def counts_no_epoch_after_the_second(server: Specified, name: str, /) -> int:
    """topic_epoch rises once."""
    return min(golden(server).epoch_of(name), 2)


@mutant(Specified.found_body, asked=("top/*",))
def tells_the_creation_in_milliseconds(server: Specified, topic: Topic, /) -> Body:
    """The creation time is a thousand times what it is in seconds."""
    body = golden(server).found_body(topic)
    return {**body, "created_at": body["created_at"] * 1000}


def _wrong_fact(key: str, words: str) -> None:
    def replacement(server: Specified, topic: Topic, /) -> Body:
        return {**golden(server).log_body(topic), key: -1}

    name = f"does_not_know_its_{words}"
    title = f"GetTopic says -1 for the {words.replace('_', ' ')} of a log."
    register(Specified.log_body, name, title, replacement, "specified")


_wrong_fact("start_offset", "start")
_wrong_fact("end_offset", "end")
_wrong_fact("record_count", "number_of_records")


@mutant(Specified.log_body, only="deployed")
def adds_what_clients_trip_over(_server: Specified, topic: Topic, /) -> Body:
    """GetTopic answers with the id as text."""
    return {"id": str(topic.id)}


@mutant(Specified.name_of, only="specified")
def decodes_overlong_forms(server: Specified, raw: bytes, /) -> str:
    """Two bytes that stand for a slash pass as a character."""
    return golden(server).name_of(raw.replace(b"\xc0\xaf", b"-"))


@mutant(Specified.name_of, only="specified")
def lets_surrogates_pass(_server: Specified, raw: bytes, /) -> str:
    """Half a surrogate pair is a character."""
    try:
        return raw.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        raise Refused(0x12, "a topic name is UTF-8") from None


@mutant(Specified.name_of, only="specified")
def drops_a_cut_character(server: Specified, raw: bytes, /) -> str:
    """A character that is cut off at the end of a name is dropped."""
    return golden(server).name_of(raw[:-1] if raw and raw[-1] >= 0xC0 else raw)


@mutant(Specified.name_of)
def trims_names(server: Specified, raw: bytes, /) -> str:
    """Spaces around a name are removed."""
    return golden(server).name_of(raw).strip(" ")


@mutant(Specified.name_of, only="specified")
def cuts_names_at_the_first_dots(server: Specified, raw: bytes, /) -> str:
    """Two dots in a name end it."""
    return golden(server).name_of(raw).partition("..")[0]


@mutant(Specified.name_of, only="specified")
def knows_the_basic_plane_only(server: Specified, raw: bytes, /) -> str:
    """A character of four bytes becomes a question mark."""
    return "".join(c if ord(c) < 0x10000 else "?" for c in golden(server).name_of(raw))


@mutant(Specified.name_of, only="specified")
def drops_backslashes(server: Specified, raw: bytes, /) -> str:
    """Backslashes in names are dropped."""
    return golden(server).name_of(raw).replace("\\", "")


def _lets_pass(name: str, title: str, character: str) -> None:
    def replacement(server: Specified, text: str, /) -> bool:
        return golden(server).name_characters_ok(text.replace(character, "x"))

    register(Specified.name_characters_ok, name, title, replacement)


_lets_pass("accepts_del", "A name may have a DEL.", "\x7f")
_lets_pass("accepts_c1_controls", "A name may have control characters beyond ASCII.", "\x85")


def _is_too_kind(name: str, title: str, allowed: str) -> None:
    def replacement(server: Specified, text: str, /) -> bool:
        return golden(server).name_characters_ok("".join(c for c in text if c not in allowed))

    register(Specified.name_characters_ok, name, title, replacement, "deployed")


_is_too_kind("accepts_dots", "A name may have dots, which published servers refuse.", ".")
_is_too_kind("accepts_spaces", "A name may have spaces, which published servers refuse.", " ")
_is_too_kind(
    "accepts_symbols", "A name may have emoji, which published servers refuse.", "\N{GRINNING FACE}"
)
_is_too_kind(
    "accepts_json_syntax", "A name may have quotes, which published servers refuse.", '"\\'
)


def _repairs(name: str, title: str, broken: bytes) -> None:
    def replacement(server: Specified, raw: bytes, /) -> str:
        return golden(server).name_of(raw.replace(broken, b"-"))

    register(Specified.name_of, name, title, replacement, "deployed")


_repairs("reads_overlong_forms", "A slash in two bytes is read as a dash.", b"\xc0\xaf")
_repairs("reads_surrogates", "Half a surrogate pair is read as a dash.", b"\xed\xa0\x80")
_repairs("reads_cut_characters", "A character that is cut off is read as a dash.", b"\xc5")


@mutant(Specified.spelling)
def ignores_case(server: Specified, name: str, /) -> str:
    """Names that differ in case are one name."""
    return golden(server).spelling(name).lower()


def _allows(slug: str, what: str, allowed: Collection[str]) -> None:
    def fits(server: Specified, name: str, /) -> bool:
        if name in allowed:
            return True
        return golden(server).name_characters_ok("".join(c for c in name if c not in allowed))

    register(Specified.name_characters_ok, f"allows-{slug}-in-names", f"{what} may be in a name.",
             fits, "specified", ("name/*",))  # fmt: skip


_allows("c1-controls", "Controls from U+0080 on", [chr(code) for code in range(0x80, 0xA0)])
_allows("c0-controls", "Controls below U+0020", [chr(code) for code in range(1, 0x20)])
_allows("delete", "U+007F", "\x7f")
_allows("marks", "Marks of direction", "\u061c\u200e\u200f")
_allows("embeddings", "Embeddings and overrides", "\u202a\u202b\u202c\u202d\u202e")
_allows("isolates", "Isolates", "\u2066\u2067\u2068\u2069")
_allows("separators", "Separators of lines and paragraphs", "\u2028\u2029")
_allows("one-dot", "One dot alone", ["."])
_allows("two-dots", "Two dots alone", [".."])


def _refuses_names(slug: str, words: str, refused: Callable[[str], bool]) -> None:
    def name_characters_ok(server: Specified, name: str, /) -> bool:
        return not refused(name) and golden(server).name_characters_ok(name)

    register(Specified.name_characters_ok, f"refuses-names-with-{slug}",
             f"A name with {words} is refused.", name_characters_ok, "specified",
             ("name/all-or-plain",))  # fmt: skip


_refuses_names("spaces", "a space", lambda name: " " in name)
_refuses_names("letters-beyond-ascii", "a letter beyond ASCII", lambda name: not name.isascii())
_refuses_names("dots", "two dots", lambda name: ".." in name)
_refuses_names("late-characters", "a character beyond U+1FFFF",
               lambda name: max(map(ord, name)) > 0x1FFFF)  # fmt: skip
_refuses_names(
    "marks", "a mark that file names do not have", lambda name: bool(set(name) & set('*?<>:"'))
)

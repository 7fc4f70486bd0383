"""Error codes again for each request, and refusals that a client must not hammer at."""

from collections.abc import Mapping

from lance_conformance.client.cases.codes import CLAUSES, CODES, FATAL, RETRIABLE
from lance_conformance.client.cases.misc import WITH_TOKEN
from lance_conformance.client.cases.reads import ONE
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Count, First, Same
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    commit,
    create,
    create_limited,
    delete_topic,
    fetch,
    get_topic,
    list_topics,
    poll,
    send,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.script import BATCH, ELSEWHERE, HERE, Refuse, Trigger, on

BEGUN = (list_topics(), subscribe(), poll())
ASKED: Mapping[Trigger, tuple[tuple[Op, ...], Op]] = {
    "create": ((), create()), "create-limited": ((), create_limited()),
    "list": ((get_topic(),), list_topics()), "delete": ((), delete_topic()),
    "retention": ((), set_retention()), "fetch": ((), fetch()), "commit": (BEGUN, commit(ONE)),
    "ingest": ((), send(b"one")),
}  # fmt: skip
"""What comes before, and the operation, by its request."""
USUAL = (0x10, 0x13, 0x30, 0x42)
FAMILIES = {0x02: "code/02", 0x05: "code/02", 0x06: "code/02"}
FIRST = {FATAL: "code/03", RETRIABLE: "code/21", ("auth",): "code/40"}
KNOWN = {("ingest", code) for code in (0x21, 0x22, 0x23, 0x30, 0x31, 0x62, 3, 4, 0x10, 0x13, 0x42)}
KNOWN |= {("fetch", code) for code in (0x50, 0x51, 0x10, 0x42)}
"""Asked among the errors themselves."""
MOST_TRIES = 40
"""Times that a client may ask again while one operation lasts."""


def _details(trigger: str) -> Mapping[str, str]:
    return {"batch_id": BATCH} if trigger == "ingest" else {}


for trigger, (before, op) in ASKED.items():
    for code, (name, kinds) in CODES.items():
        if (trigger, code) not in KNOWN:
            add_case(
                f"code/{trigger}-{code:02x}", CLAUSES.get(kinds, "12.4/fatal"),
                f"Error {code:#04x} ({name}) in answer to {trigger} is told as "
                f"{' or '.join(kinds)}.",
                ClientCase((*before, op.fails(*kinds)),
                           (on(trigger, Refuse(code, name, _details(trigger)), nth=0),)),
                dialects=SPECIFIED, quick=False, weight=2 if before else 1,
                thorough=code not in USUAL, twin_of=FAMILIES.get(code) or FIRST[kinds],
            )  # fmt: skip

# -- redirects -------------------------------------------------------------------------------------


def _moved(address: str, trigger: str = "ingest") -> Refuse:
    return Refuse(0x20, f"NOT_LEADER: redirect to {address}",
                  {"leader_addr": address, **_details(trigger)})  # fmt: skip


for trigger, (before, op) in ASKED.items():
    if trigger != "ingest":
        add_case(
            f"code/moved-{trigger}", "12.4/redirect",
            f"NotLeader in answer to {trigger} is told as a redirect, or followed.",
            ClientCase((*before, op.safe("redirect", "retriable")),
                       (on(trigger, _moved(ELSEWHERE, trigger), nth=0),)),
            quick=False, weight=2 if before else 1, twin_of="code/not-leader",
        )  # fmt: skip
add_case(
    "code/leader-same-batch", "10.4/same-batch",
    "A batch that is sent to the leader is the frame that the follower refused.",
    ClientCase((send(b"one").safe(),), (on("ingest", _moved(ELSEWHERE), nth=0),),
               (Same("ingest", 1),)),
    quick=False,
)  # fmt: skip
add_case(
    "pass/leader", "5.2/token-first", "A token is presented first to the leader, too.",
    ClientCase((send(b"one").safe(),), (on("ingest", _moved(ELSEWHERE), nth=0),),
               (First("auth"),), options=WITH_TOKEN),
    quick=False,
)  # fmt: skip

# -- again and again -------------------------------------------------------------------------------

LOST = ("redirect", "retriable", "timeout", "closed")
AGAIN: Mapping[Trigger, tuple[str, Op]] = {
    "ingest": ("batch", send(b"one")), "get": ("request", get_topic()),
}  # fmt: skip
for trigger, (what, op) in AGAIN.items():
    for name, words, refusal in (
        ("limited", "RateLimited", Refuse(0x30, "Rate limit exceeded", _details(trigger))),
        ("itself", "NotLeader, with itself for the leader", _moved(HERE, trigger)),
    ):
        add_case(
            f"code/{name}-{what}-always", "12.4/backoff",
            f"A server that answers each {what} with {words} is not hammered.",
            ClientCase((op.fails(*LOST),), (on(trigger, refusal, nth=0),),
                       (Count(trigger, 1, MOST_TRIES),)),
            quick=False, twin_of="code/limited-batch-always",
        )  # fmt: skip

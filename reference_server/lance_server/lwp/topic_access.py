"""Topics as one client sees them."""

from lance_server.log.log_manager import LogManager, Topic
from lance_server.lwp.refusals import Refusal
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer


def permitted_topic(
    engine: LogManager, authorizer: Authorizer, right: Right, topic_id: int, *, text: str
) -> Topic:
    """Return a topic that a client may use in some way.

    Who may not use a topic does not learn whether there is one.

    Args:
        engine: the log.
        authorizer: judges the client.
        right: what the request needs.
        topic_id: the topic's number.
        text: how the published server words its absence for this command.

    Raises:
        Refusal: the client may not, or there is no such topic.
    """
    try:
        topic = engine.topic(topic_id, text=text)
    except Refusal:
        authorizer.check(right, topic_id, engine.remote_name(topic_id))
        raise
    authorizer.check(right, topic_id, topic.access_name)
    return topic

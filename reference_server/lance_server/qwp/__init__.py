"""A QWP endpoint: what QuestDB-style senders write becomes records of topics.

It needs the extra ``qwp``; import `lance_server.qwp` only where the endpoint is wanted.
"""

from lance_server.qwp.listener import QwpListener
from lance_server.qwp.options import QwpOptions
from lance_server.qwp.script import Rule, Script

__all__ = ["QwpListener", "QwpOptions", "Rule", "Script"]

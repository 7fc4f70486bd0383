"""A QWP endpoint: what QuestDB-style senders write becomes records of topics.

It needs the extra ``qwp``; import `lance_server.listeners.qwp` only where the endpoint is wanted.
"""

from lance_server.listeners.qwp.listener import QwpListener
from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.qwp.script import Rule, Script

__all__ = ["QwpListener", "QwpOptions", "Rule", "Script"]

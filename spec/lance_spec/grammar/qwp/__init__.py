"""QuestDB's wire protocol."""

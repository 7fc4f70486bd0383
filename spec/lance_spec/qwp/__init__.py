"""QuestDB's wire protocol: what its columns and its upgrade need."""

"""The async driver and its transports: asyncio and trio."""

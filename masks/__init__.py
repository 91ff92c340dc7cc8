"""What a conversation looks like as DeepSeek-V4 tokens, and which of those tokens are trained.

The way of a record: `conversation.parse` (is it one?) -> `deepseek_v4.render` (segments) -> `policy.trained` (which of
them are targets). Pure functions; nothing here knows a tokenizer, a file or a row. Imports nothing of `databuild`.
"""

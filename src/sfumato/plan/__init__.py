"""What was asked: SQL text or Python calls, as one small frozen tree."""

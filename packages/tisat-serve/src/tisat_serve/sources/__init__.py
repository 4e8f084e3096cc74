"""Sources of rows: pulled by query, from brokers, or made of pushed samples."""

"""Where rows come from when they are not posted as rows: pulled by query, or put together from single samples."""

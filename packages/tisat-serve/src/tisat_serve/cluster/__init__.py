"""Several services: shards, peers, moving an entity."""

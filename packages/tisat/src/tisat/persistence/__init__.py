"""Model files: safetensors with a JSON document, checked when read. No pickle."""

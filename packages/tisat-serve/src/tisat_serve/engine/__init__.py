"""The engine: rows in, outcomes out, everything on the disk before it is answered."""

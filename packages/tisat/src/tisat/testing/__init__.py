"""Contract tests that every detector must pass: :func:`tisat.testing.contracts.check_detector`."""

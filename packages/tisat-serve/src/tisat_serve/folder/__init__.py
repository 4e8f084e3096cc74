"""The folder of a service: backup, history, forgetting, upgrade, replay."""

"""Differential fuzzing: random calls of bc.functional beside torch's own functions, which compute in float64."""

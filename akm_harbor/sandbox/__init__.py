"""Real trials without Docker: a bubblewrap environment and a scripted model, for demos, tests and CI."""

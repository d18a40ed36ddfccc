"""Harbor job directories to tables."""

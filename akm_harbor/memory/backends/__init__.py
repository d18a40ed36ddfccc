"""The arms: memories that can be compared, from none at all to akm."""

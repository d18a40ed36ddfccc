"""What a measured arm runs: agents on Harbor's OpenCode, toolchain, delivery evidence."""

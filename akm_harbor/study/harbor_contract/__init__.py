"""What we rely on inside Harbor, asserted by behaviour: `akm-harbor doctor --harbor`."""

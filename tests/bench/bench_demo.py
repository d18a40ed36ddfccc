"""How long the demo takes once everything is downloaded: prints name, measured, target, ok."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLI = [sys.executable, "-c", "from akm_harbor.cli import main; main()"]
TARGET = 75.0


def main() -> int:
    """Build what is missing first, then time one demo of control and oracle context."""
    subprocess.run([*CLI, "toolchain", "build", "--control-only"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        command = [*CLI, "demo", "--no-akm", "-o", str(Path(folder) / "demo")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        seconds = time.perf_counter() - started
    ran = done.returncode == 0 and "recorded trials" not in done.stderr
    if not ran:
        sys.stderr.write(done.stderr)
    ok = ran and seconds <= TARGET
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"{'demo, ' + load:<52} {seconds:>20.1f} s {f'<= {TARGET:g} s':>14} {'ok' if ok else 'MISSED'}")
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())

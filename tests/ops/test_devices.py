"""Every op and module keeps to the device of its operands: no tensor of the CPU slips in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_nothing_leaves_the_device() -> None:
    script = Path(__file__).with_name("devices.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) > 550

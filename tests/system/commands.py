"""Commands of the machine that end by themselves. Used by deploy/compose-test and deploy/deb-test."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLOWNESS = float(os.environ.get("SLOWNESS", "1"))  # of this machine now, as tests/run.py measured it
# Seconds that only a hang takes: on a busy machine an engine was silent for 180, and made an image for 900.
PATIENCE, BUILD = 600 * SLOWNESS, 3000 * SLOWNESS


def attempt(*command, timeout=PATIENCE, text=None):
    """(exit status, stdout, both outputs); 124 after the time, 127 if there is no such command. text: its input."""
    try:
        done = subprocess.run(command, cwd=ROOT, input=text, stdin=None if text else subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    except FileNotFoundError:
        return 127, "", f"no {command[0]} here"
    except subprocess.TimeoutExpired:
        return 124, "", f"{command[0]} says nothing for {timeout:g} s"
    return done.returncode, done.stdout.strip(), (done.stdout + done.stderr).strip()

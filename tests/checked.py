"""checked.py - what tests of small networks, written there, have in common."""
import json
import subprocess

from truthlib import AMPHORA

BAD = []  # names of checks that failed


def check(name, right, why=""):
    print(f"{'ok  ' if right else 'WRONG'} {name}{'' if right else ': '}"
          f"{'' if right else why}", flush=True)
    if not right:
        BAD.append(name)


def run(*arguments):
    """Exit code and all that was said."""
    done = subprocess.run([AMPHORA, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def run_json(*arguments):
    """Exit code and the object that --json prints."""
    done = subprocess.run([AMPHORA, *arguments, "--json"],
                          capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout or "{}")


def ramp(n, step=0.37, size=1.0):
    return [size * (((i * step) % 2) - 1) for i in range(n)]

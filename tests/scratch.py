"""scratch.py - folders of tests, taken away when they end.

tests/all.py sets TMPDIR to a folder that goes with each test, so that nothing
stays of one that was ended either.
"""
import atexit
import shutil
import tempfile


def folder(prefix="amphora-"):
    """A new folder, there until the script ends."""
    made = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made

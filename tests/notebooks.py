#!/usr/bin/env python3
"""notebooks.py - the notebooks of examples/notebooks run from top to bottom.

Each cell of code in one namespace, in order; what a cell ends in must show
itself. Their assertions are the tests. With --long they run as notebooks do,
in a kernel of their own (python3-nbclient, python3-ipykernel), and leave no
outputs in the tree.
"""
import ast
import glob
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
PYTHON = os.path.join(ROOT, "python")
os.environ.setdefault("AMPHORA_LIBRARY",
                      os.path.join(ROOT, "build", "libamphora.so.1"))
os.environ["PYTHONPATH"] = PYTHON
sys.path.insert(0, PYTHON)


def show(value):
    """As a notebook would: the richest form that there is."""
    text = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
    if not text:
        raise AssertionError(f"{type(value)} shows nothing")


def run_plainly(cells):
    names = {"__name__": "__main__"}
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)  # pylint: disable=exec-used
        if last:
            value = eval(compile(ast.Expression(last.value),  # pylint: disable=eval-used
                                 "cell", "eval"), names)
            if value is not None:
                show(value)


def run_in_kernel(path):
    import nbclient  # pylint: disable=import-outside-toplevel
    import nbformat  # pylint: disable=import-outside-toplevel
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=600, resources={
        "metadata": {"path": os.path.dirname(path)}}).execute()
    shown = sum(bool(cell.get("outputs")) for cell in book.cells)
    if shown < 3:
        raise AssertionError(f"{path} shows {shown} results")


def main():
    long = "--long" in sys.argv
    if long:
        subprocess.run(["sh", "-c", ". tools/setup.sh && "
                        "install_packages $notebook_packages"], check=True)
    paths = sorted(glob.glob("examples/notebooks/*.ipynb"))
    if len(paths) != 3:
        raise SystemExit(f"{len(paths)} notebooks")
    for path in paths:
        start = time.monotonic()
        with open(path, encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        kept = [c for c in cells if c.get("outputs")]
        if kept:
            raise SystemExit(f"{path} has outputs in it")
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        run_in_kernel(path) if long else run_plainly(code)
        print(f"{path}: {len(code)} cells, {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""all.py - runs every test of the tree and counts.

Needs the folders build (gcc) and build-asan (clang, sanitizers), which ./test
makes. Kinds of tests:
  unit   cmocka programs tests/ROOM/test_*.c, in both builds
  lint   tests/lint.py
  rooms  tests/rooms.py: no room uses what stands behind it
  cli    tests/cli.py: commands with their exact output
  docs   tests/docs.py: documents show what the commands print
  goal   tests/goal.py: searches of machines find what the grid has
  pages  tests/pages.py: reports and sweeps, worked with in a browser
  submit  tests/submit.py: shards of sweeps, lost and doubled
  library  tests/library.py: the planners, installed and used
  api    tests/api.py: libamphora and the Python package, beside the command
  notebooks  tests/notebooks.py: examples/notebooks, top to bottom
  package  tests/package.py: with --long, the .deb in a clean root
  onnx_testdata  tests/onnx_testdata.py: ONNX's own models and outputs
  exported  tests/exported.py: modules of torch as ONNX, against torch
  e2e    tests/e2e.py: networks x machines, verified
  truth  tests/truth_*.py: against OpenCV and onnxruntime; without --long
         against what these said of small networks
  formats  tests/formats.py: real networks of other formats
  saved_model  tests/saved_model.py: TensorFlow's folders, whole and broken
  recorded  tests/recorded.py: our listings against recorded ones
  fuzz   tests/fuzz.py: damaged input
  placements  tests/placements.py: no plan wastes active memory
  relaxed tests/relaxed.py: a gap or a relation never makes a height worse
  patience tests/patience.py: --seconds and --budget of pack
  ilp    tests/ilp.py: least heights against an integer program; needs cbc
  orders tests/orders.py: orders and steps, with their proofs
  bundle tests/bundle.py: networks as machine code, linked and run; the
         programs of docs/bundle.md
  kernels  tests/kernels.py: kernels of random shapes on each processor
  llvm   tests/llvm.py: with --long, native code by every LLVM that Debian has
  mutate_listing  tests/mutate_listing.py: no token of a listing can be changed
         unseen
  figures  tests/figures.py: what small networks cost, as recorded
  listing  tests/listing.py: what a listing says to programs, as simulated
  cycles tests/cycles.py: what never costs cycles; recorded ones no fewer
  overlap  tests/overlap.py: transfers in the steps of layers; races refused
  images  tests/images.py: several images one behind the other
  rings  tests/rings.py: least memory without spills where rows roll
  staged  tests/staged.py: weights in active memory, loaded ahead
  places  tests/places.py: operands in memories of their own
  imports  tests/imports.py: descriptions of DPUs become machines
  containers  tests/containers.py: files of real machines, both ways
  max78000  tests/max78000.py: descriptions run through data memories
  tokens  tests/tokens.py: queues that tokens alone order
  gemmini  tests/gemmini.py: instructions that say what they do
  vta  tests/vta.py: words with micro-ops and tokens
  weights  tests/weights.py: plans that count weights, beside Vela's
  budget tests/budget.py: searches end, plans are legal, advice is right
  concats  tests/concats.py: one plan, however concats and sums are written
  depth  tests/depth.py: groups of layers that spread pixels
  least  tests/least.py: what would do where nothing fits, and what not
  explained  tests/explained.py: --explain adds up, and has a reason for each
         volume
  slabs  tests/slabs.py: pools over whole images, by channels
  layouts  tests/layouts.py: random networks on random layouts
  k210_sim  tests/k210_sim.py: recorded files of a real machine, node by node
  kmodel  tests/kmodel.py: files that amphora makes for it
  layout_mutants  tests/layout_mutants.py: mistakes in layout.c are noticed
  names  tests/names.py: names, links and sizes in models that mean harm
  specials  tests/specials.py: NaN and infinities, the same everywhere
  untold  tests/untold.py: instructions that lack a token
  couples  tests/couples.py: layers that pass slabs of channels to the next
  promise  tests/promise.py: a larger memory gets no worse plan
  small_memories  tests/small_memories.py: random networks in less memory than
         they take
  farm  tests/farm.py: random networks on random machines
  residency  tests/residency.py: never more bytes over DDR than LRU moves
  results  tests/results.py: the same of graphs with several results
  mutants  tests/mutants.py: how it makes mutants; with --long, whether these
         tests notice 200 small mistakes in the sources
  boxes  tests/boxes.py: layers of which not one stripe of rows fits
  tiles  tests/tiles.py: single layers against a bound on their bytes
  nets   tests/nets.py: networks as people bring them, compiled around what
         cannot be compiled
  operators  tests/operators.py: what a vector engine runs beside the array
  quantise  tests/quantise.py: networks on codes from samples
  nests  tests/nests.py: no tile of channels is cheaper than the plan's, by the
         simulator
Says of each how long it took, and the seconds of processors that it took, which
are the same however busy the machine is. Closes with `N passed, N failed`;
exits 1 if any failed.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

JOBS = os.cpu_count() or 1
# These begin, so that nothing else waits for them in the end.
SLOW = ("e2e", "onnx_testdata", "least", "staged",
        "build-asan: alloc_test_plan_depth",
        "build-asan: alloc_test_plan_sweep", "build-asan: alloc_test_bound",
        "build-asan: sched_test_model", "build: alloc_test_plan_depth",
        "build: alloc_test_plan_sweep")


def unit_tests(build):
    """(name, command) of the cmocka programs in a build folder."""
    names = [n for n in sorted(os.listdir(build))
             if "_test_" in n and os.access(os.path.join(build, n), os.X_OK)
             and os.path.isfile(os.path.join(build, n))]
    return [(f"{build}: {n}", [os.path.join(build, n)]) for n in names]


def scripts(long):
    """(name, command) of the test scripts."""
    flag = ["--long"] if long else []
    found = []
    for name in (
            "e2e",
            "onnx_testdata",
            "truth_onnx",
            "exported",
            "truth_caffe",
            "truth_tf",
            "truth_keras",
            "truth_mxnet",
            "truth_tflite",
            "truth_darknet",
            "fuzz",
            "formats", "saved_model",
            "same",
            "hostile",
            "orders",
            "recorded",
            "mutate_listing",
            "cli",
            "docs",
            "library", "api", "notebooks", "package",
            "lint",
            "rooms",
            "mutants",
            "explore", "goal", "submit", "pages",
            "figures", "listing",
            "cycles",
            "bundle",
            "kernels",
            "llvm",
            "overlap",
            "images",
            "rings",
            "staged", "places", "imports", "tokens", "gemmini", "vta",
            "budget",
            "concats",
            "depth",
            "least",
            "explained",
            "slabs", "couples", "layouts", "layout_mutants", "names",
            "specials", "untold",
            "promise",
            "residency", "results",
            "small_memories",
            "farm",
            "boxes", "tiles", "nests", "nets",
            "containers", "k210_sim", "kmodel", "max78000",
            "weights",
            "placements",
            "ilp", "relaxed", "patience",
            "int8", "quantise",
            "truth_int8",
            "quant",
    ):
        path = os.path.join("tests", name + ".py")
        if os.path.exists(path):
            found.append((name, [sys.executable, path] + flag))
    return found


def run(test):
    name, command = test
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL) as test:
            _, status, used = os.wait4(test.pid, 0)
            test.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return name, test.returncode, text, (time.monotonic() - start,
                                         used.ru_utime + used.ru_stime)


def main():
    long = "--long" in sys.argv[1:]
    if long:
        os.environ["TEST_LONG"] = "1"  # tests/effort.h
    tests = scripts(long) + unit_tests("build-asan") + unit_tests("build")
    tests.sort(key=lambda test: test[0] not in SLOW)
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for name, code, output, (seconds, used) in pool.map(run, tests):
            good = code == 0
            passed += good
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {name} ({seconds:.1f} s, "
                  f"{used:.1f} of processors)",
                  flush=True)
            if not good or name.startswith("truth") or name in (
                    "e2e", "onnx_testdata", "recorded", "mutate_listing"):
                lines = output.rstrip().split("\n")
                print("\n".join("    " + line for line in lines), flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

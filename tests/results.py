#!/usr/bin/env python3
"""results.py - graphs with several results, where memory is short.

Random graphs of bench/results.py, of which some are longer than the longest
cascade that is tried for time: at most 0.02 of LRU's bytes in the mean, no row
above LRU or Belady, or above the same graph with one result plus the bytes of
its own; one of them run by value. With --long a thousand.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
import residency  # noqa: E402
import results  # noqa: E402
import tool  # noqa: E402

MOST = 0.02
# operators: graphs
QUICK, LONG = {14: 3, 24: 2}, {14: 500, 24: 500}
FOUND = {14: [9400031]}  # seeds that once were above
VERIFIED = (14, 100 << 10)  # operators, bytes


def sample(operators, n, folder):
    sums = results.Sums()
    seeds = range(1000 * operators, 1000 * operators + n)
    for seed in [*seeds, *FOUND.get(operators, [])]:
        results.one_graph(seed, operators, folder, sums)
    print(f"{operators} operators: {sums}", flush=True)
    return sums.mean() > MOST or any(sums.above.values())


def wrong_values(folder):
    path, _ = results.written(7, VERIFIED[0], False, folder)
    done = tool.verified(path, residency.MACHINE, tool.am(VERIFIED[1]),
                         objective="bytes")
    print(f"by value: {'right' if done else 'does not fit'}")
    return not done


def main():
    graphs = LONG if "--long" in sys.argv[1:] else QUICK
    with tempfile.TemporaryDirectory() as folder:
        bad = sum(sample(k, n, folder) for k, n in graphs.items())
        bad += wrong_values(folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""two_levels.py - two levels of memory: what others reach, what was asked, and
what amphora does.

    python3 bench/two_levels.py [--tables] [SECTION...]

One section a row of the table of figures to reach; --tables prints what each
was counted from. Bytes and cycles are counted by running the emitted listing;
that values are right is what `verify`, bench/tiles.py, bench/vela.py and the
tests show. Seconds are of the processor, from start to end of `compile`.
Published figures: ../shared/facts/two-level.md 2, peers.md 3 and 4.1,
xdnn.md 4. Under each row stands what a reader of it should know. Exits 1 where
a figure is missed.
"""
import argparse
import concurrent.futures
import contextlib
import io
import os
import sys
import tempfile
import textwrap

import overlap
import residency
import tiles
import tool
import traffic
import vela

MIB = 2 ** 20
WIDTH = 88
VGG_AM = 361872
ALWANI_AM = 362 * 1000
MCUNET_AM = 172 * 1024
MOBILENET_AM = 145376
# two-level.md 2.4; 1.000 is "at most 1" there
TILES = {64: (2.218, 1.258, 1.223, 1.531), 128: (1.834, 1.071, 1.023, 1.147),
         256: (1.424, 1.000, 1.000, 1.014), 512: (1.097, 1.000, 1.000, 1.000),
         1024: (1.011, 1.000, 1.000, 1.000)}
TILES_ASKED = (1.10, 1.02, 1.02, 1.02)
TILES_AT = 512
HIDDEN = 1.03
HIDDEN_NETWORKS = ("resnet50", "googlenet", "mobilenet-v2", "inception-v3",
                   "vgg16")
STAGED = "stage-npu"
SLOWED = ("xdnn-v2-28", "ring-npu")  # DDR slowed to half of the work's time
IMAGES = 3  # of the listings with several, one behind the other


class Row:
    def __init__(self, what, others, asked, ours, met, *notes):
        self.what, self.others, self.asked = what, others, asked
        self.ours, self.met, self.notes = ours, met, notes

    def __str__(self):
        lines = [("others", self.others), ("asked", self.asked),
                 ("ours", self.ours + ("" if self.met else "   MISSED")),
                 *(("", note) for note in self.notes)]
        return "\n".join([self.what] + [
            textwrap.fill(text, WIDTH, initial_indent=f"  {label:8}",
                          subsequent_indent=" " * 12)
            for label, text in lines])


def yolo(folder):
    runs = [traffic.yolo(folder, relu) for relu in (True, False)]
    texts = ["{:.1f} MiB, {} gathers + {} scatters".format(
        run["moved"] / MIB, *run["moves"]) for run in runs]
    yield Row(
        "YOLOv2-608 on xdnn-v2-56, 6 MiB, 2 bytes an element",
        "{:.0f} MiB, {} + {} (recorded listing)".format(
            traffic.RECORDED / MIB, *traffic.RECORDED_MOVES),
        "at most 16 MiB", f"{texts[0]}, with ReLU as in that listing",
        all(run["moved"] <= 16 * MIB for run in runs),
        f"{texts[1]} with its own leaky ReLU (instructions of their own here)",
        f"compulsory {runs[0]['ddr_compulsory_bytes'] / MIB:.1f} MiB; weights "
        "are in neither figure; d/conv3 is the host's, whose bytes count")


def nine(folder):
    names = list(residency.NETWORKS)
    rows = traffic.table([residency.network_file(n, folder) for n in names],
                         residency.MACHINE, folder, 1)
    lru, belady, whole = (
        tool.geometric_mean(traffic.ratios(rows, other))
        for other in (lambda r: r.lru, lambda r: r.belady,
                      lambda r: r.lru_whole))
    above = [f"{tool.name_of(r.network)} at {r.part:.0%} ({r.ours / r.lru:.2f})"
             for r in rows if r.lru and r.ours > r.lru]
    published, program = (
        tool.geometric_mean(residency.against_published(names, rows, column))
        for column in (residency.LRU, residency.ROWS))
    slowest = max(rows, key=lambda r: r.seconds)
    yield Row(
        "Nine networks x active memory of 90, 75, 50, 25 % of the peak, "
        "bytes beyond the compulsory ones",
        "LRU 1, Belady 0.845, per gap 0.672, program of rows 0.382 (no "
        "buffers charged)",
        "at most 0.45 of LRU (geometric mean), buffers charged",
        f"{lru:.3f} of LRU, {belady:.3f} of Belady",
        lru <= 0.45 and all(r.ours is not None for r in rows),
        f"above LRU: {', '.join(above) or 'none'}",
        "members of a concat are volumes of their own to LRU, in no "
        f"particular place; were each concat one volume: {whole:.3f}",
        f"of the published cells: {published:.3f} of LRU, {program:.3f} of "
        "the program of rows; peaks there are not always ours")
    yield Row("Time of each of these 36 plans", "0.6 s of cbc",
              "at most 1 s", f"at most {slowest.seconds:.2f} s "
              f"({tool.name_of(slowest.network)} at {slowest.part:.0%})",
              slowest.seconds <= 1)


def vgg_stem(folder):
    run = tool.counted(tool.example("vgg-e-stem"), "line-npu", folder,
                       tool.am(VGG_AM))
    yield Row(
        "VGG-E, first five convolutions, fp32, on line-npu",
        "Alwani: 3.64 MiB with 362 KB", "3.64 MiB with at most 362 KB",
        f"{run['moved'] / MIB:.2f} MiB ({run['moved']:,} bytes, compulsory "
        f"{run['ddr_compulsory_bytes']:,}) with {run['am_peak_bytes']:,} bytes",
        run["extra"] == 0 and run["am_peak_bytes"] <= ALWANI_AM,
        f"weights are in neither figure; ours are read "
        f"{run['weights_read_bytes']:,} bytes",
        "products: " + recomputed(tool.example("vgg-e-stem"), "line-npu",
                                  run, folder)[1])


def products(listing):
    """Products of all convolutions of a listing, by the sizes in it."""
    total = 0
    for row in tool.listing_rows(listing):
        if row["op"] in ("CONV", "CONVD"):
            of = [int(row[k]) for k in ("dst_c", "dst_h", "dst_w", "kw", "kh")]
            total += (of[0] * of[1] * of[2] * of[3] * of[4]
                      * (int(row["src_c"]) if row["op"] == "CONV" else 1))
    return total


def recomputed(network, machine, run, folder):
    """Does the run compute nothing twice? And what to say of it."""
    ours = products(run["plan"]["listing"])
    whole = products(tool.compiled(network, machine, folder,
                                   tool.am("64MiB"))["listing"])
    return ours == whole, (f"{ours:,}, with endless active memory {whole:,}")


def mobilenet(folder):
    network = tool.example("mobilenet-v2")
    size, run = vela.least(network, folder, vela.nothing_extra)
    once, text = recomputed(network, vela.MACHINE, run, folder)
    yield Row(
        "MobileNetV2, 8 bits, image streamed, on ring-npu",
        "MCUNetV2: 172 KB with 10 % more products",
        f"at most {MOBILENET_AM:,} bytes, nothing computed twice",
        f"{size:,} bytes; {run['moved']:,} over DDR, compulsory "
        f"{run['ddr_compulsory_bytes']:,}",
        size <= MOBILENET_AM and once, "products: " + text,
        f"weights are not in active memory: {run['weights_read_bytes']:,} "
        "bytes of them are read, some several times; MCUNetV2's lie in flash")


def chen(folder):
    tiles.heading()
    found = {kib: [tiles.row(tool.example(n), kib * 1024, folder,
                             values=False) for n in tiles.NETWORKS]
             for kib in TILES}
    weighed = [tiles.row(tool.example(n), TILES_AT * 1024, folder,
                         values=False, by_bytes=False) for n in tiles.NETWORKS]

    def text(ratios):
        return ", ".join(f"{n} {r:.3f}" for n, r in zip(tiles.NETWORKS, ratios))

    yield Row(
        "Single layers against the Chen bound, 512 KiB, on tile-npu",
        text(TILES[TILES_AT]), text(TILES_ASKED), text(found[TILES_AT]),
        all(r <= a for r, a in zip(found[TILES_AT], TILES_ASKED)),
        *(f"{kib:4} KiB: {text(found[kib])}; published "
          + ", ".join(f"{r:.3f}" for r in TILES[kib])
          for kib in TILES if kib != TILES_AT),
        "the bound is of bytes alone, and so were layers planned "
        "(--objective bytes); where time is weighed, too, as a user has "
        f"it, {text(weighed)}",
        "the bound is asymptotic, for any one layer it may be above what can "
        "be done: below 1 means that, no more")


def caps(folder):
    """Bytes at every cap."""
    lost, rises, count, quotients = [], [], 0, []
    vela.heading()
    for name, path, table in vela.TABLE:
        before = None
        for cap, theirs, ours in vela.rows(
                name, path, table if os.path.exists(path) else {}, folder,
                False):
            count += 1
            quotients.append((ours or theirs * 100) / theirs)
            if ours is None or ours >= theirs:
                lost.append(f"{name} at {cap} KiB")
            if None not in (before, ours) and ours > before:
                rises.append(f"{name} at {cap} KiB")
            before = ours
    yield Row(
        "Bytes over DDR under Vela's caps on fast memory, weights included, on "
        "ring-npu",
        "Vela 3.10 and 5.1, the better of the two; up to +44 % with more",
        "fewer bytes at every cap; never rising",
        f"fewer at {count - len(lost)} of {count} caps, {min(quotients):.2f} "
        f"to {max(quotients):.2f} of them; rising at {len(rises)}",
        count and not lost and not rises, *lost, *rises,
        "Vela's bytes are its own estimate for Ethos-U65, with weights "
        "compressed and buffered in the cap; ours are not compressed, and "
        "have no place in the cap: ring-npu reads them past it, as often as "
        "instructions use them; MobileNetV2 is our description of it")


def least_memory(folder):
    """Two questions: maps alone, and no more bytes than Vela in all."""
    for name, cap in (("person_detect", 32), ("mobilenet_v2", 384)):
        path, theirs = next((path, table[cap]) for n, path, table in vela.TABLE
                            if n == name)
        if not os.path.exists(path):
            continue
        size, run = vela.least(path, folder, vela.nothing_extra,
                               "tiling.weights_stay=true")
        total, weighed = vela.least(
            path, folder,
            lambda plan, most=min(theirs): moved(plan, folder) <= most,
            "tiling.weights_stay=false")
        most = vela.LEAST[name] * 1024
        yield Row(
            f"Least fast memory, {name}, on ring-npu",
            f"Vela {most:,.0f} bytes, weights staged in it",
            "less, with no bytes beyond input and output",
            f"{size:,} bytes, {run['moved']:,} bytes of maps move",
            size < most,
            f"where weights count (here {run['weights_read_bytes']:,} bytes): "
            f"{total:,} bytes of memory move {weighed['moved']:,} + "
            f"{weighed['weights_read_bytes']:,}, "
            f"Vela {min(theirs):,} at {cap} KiB")


def moved(plan, folder):
    """Maps and weights of the plan whose listing lies in the folder."""
    done = tool.simulated(plan, vela.MACHINE,
                          tool.am(plan["am_capacity_bytes"]),
                          "tiling.weights_stay=false")
    return done["moved"] + done["weights_read_bytes"]


def hidden(folder):
    networks = [tool.example(n) for n in HIDDEN_NETWORKS]
    every = [residency.network_file(n, folder) for n in residency.NETWORKS] + [
        tool.example(n) for n in overlap.EXAMPLES]
    others = [m for m in overlap.MACHINES if m != STAGED]
    overlap.heading()
    staged = [row for n in every for row in overlap.rows(n, STAGED, folder)]
    found = [row for m in others for n in networks
             for row in overlap.rows(n, m, folder)]
    overlap.means([STAGED] + others, staged + found)
    slowed = [row for m in SLOWED for n in networks
              for row in overlap.rows(n, m, folder, shares=[0.5],
                                      images=IMAGES)]
    overlap.means(list(SLOWED), slowed, several=True)

    def mean(rows):
        return overlap.mean([r.ratio for r in rows])

    def images_mean(machine):
        return overlap.mean(overlap.of_images(
            r for r in slowed if r.machine == machine))

    def both(rows):
        return [row for row in rows if not row.starves]

    ratios = [r.ratio for r in both(staged)]
    yield Row(
        "Simulated time / max(all DMA, all compute) where neither starves",
        "SoMa 1.031", f"at most {HIDDEN} mean",
        f"{mean(both(staged))}",
        sum(ratios) / len(ratios) <= HIDDEN,
        f"on {STAGED}, of the class of SoMa's edge machine: weights and volumes "
        "over one DDR; of all networks, one side not more than "
        f"{overlap.STARVED} times the other; all: {mean(staged)}",
        "where only volumes move, transfers are mostly few: all rows, "
        + "; ".join(f"{m} {mean([r for r in found if r.machine == m])}"
                    for m in others)
        + f"; where neither starves: {mean(both(found))}",
        "DDR slowed until transfers take half of the work: " + "; ".join(
            f"{m} {mean([r for r in slowed if r.machine == m])}" for m in SLOWED),
        f"the same of {IMAGES} images one behind the other: " + "; ".join(
            f"{m} {images_mean(m)}" for m in SLOWED),
        "where engines run step by step, what lies before a layer of the host "
        "cannot overlap what lies behind")


SECTIONS = {"yolo": yolo, "nine": nine, "vgg": vgg_stem,
            "mobilenet": mobilenet, "tiles": chen, "caps": caps,
            "least": least_memory, "overlap": hidden}


def rows_of(name):
    """In a process of its own: (what was printed meanwhile, rows)."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), \
            tempfile.TemporaryDirectory() as folder:
        rows = list(SECTIONS[name](folder))
    return printed.getvalue(), rows


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--tables", action="store_true")
    ask.add_argument("section", nargs="*", choices=[[], *SECTIONS])
    asked = ask.parse_args()
    names, missed, count = asked.section or list(SECTIONS), 0, 0
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for printed, rows in pool.map(rows_of, names):
            if asked.tables:
                print(printed)
            for row in rows:
                print(row, flush=True)
                missed += not row.met
                count += 1
    print(f"{count - missed} of {count} reached")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())

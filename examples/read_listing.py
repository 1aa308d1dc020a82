#!/usr/bin/env python3
"""read_listing.py - a consumer of listings in one page: docs/listing.md.

Reads NET.json as `amphora compile` writes it, and says what every instruction
touches. It knows no machine: all it needs is in the file.

usage: read_listing.py NET.json
"""
import json
import sys


def pixel(lines, row, column):
    """Where a pixel of a tensor lies in its line buffers: rings, one behind
    the other, of which row r has the one of number (r + shift) % band."""
    band, width = lines["band"], lines["width"]
    lengths = [(lines["keep"] + i) // band * width + lines["span"]
               for i in range(band)]
    turn, ring = divmod(row + lines["shift"], band)
    return sum(lengths[:ring]) + (turn * width + column) % lengths[ring]


def digits(operand, index):
    """Bytes from `origin` to an element, by the axes of its layout."""
    return sum(stride * (index[of] // divide % (modulo or 1 << 62))
               for of, divide, modulo, stride in operand["axes"])


def addresses(operand):
    """The bytes that its elements begin at, with all copies."""
    if operand["role"] in ("weights", "bias"):
        element = operand["bytes"] // (operand["channels"] * operand["taps"])
        yield from range(operand["address"],
                         operand["address"] + operand["bytes"], element)
        return
    for c in range(operand["channels"]):
        for h in range(operand["rows"]):
            for w in range(operand["columns"]):
                yield from element_at(operand, c, h, w)


def element_at(operand, c, h, w):
    """Where one element lies: once, or as often as it has copies."""
    if "strides" in operand:
        steps = operand["strides"]
        yield operand["address"] + c * steps[0] + h * steps[1] + w * steps[2]
        return
    channel, row, column = (a + b for a, b in zip(operand["first"], (c, h, w)))
    if "lines" in operand:
        row, column = 0, pixel(operand["lines"], row, column)
    elif "ring" in operand:
        row %= operand["ring"]
    copies, step = 1, 0
    if "copies" in operand:
        how = operand["copies"]
        rest = channel - how["full"] * how["section"]
        if rest >= 0:
            channel = (how["full"] + rest // how["width"]) * how["section"] \
                + rest % how["width"]
            copies, step = how["units"], how["width"]
    for copy in range(copies):
        yield operand["origin"] + digits(
            operand, {"channel": channel + copy * step, "row": row,
                      "column": column})


def load(path):
    """What is under "amphora", if it is of a version that we know."""
    with open(path, encoding="utf-8") as file:
        listing = json.load(file)["amphora"]
    if listing["format"] != "amphora listing" or listing["version"] != 1:
        sys.exit(f"{path}: not a listing of version 1")
    return listing


def main():
    listing = load(sys.argv[1])
    outside = {m["name"] for m in listing["memories"] if m["role"] != "active"}
    read = written = end = 0
    for record in listing["records"]:
        places = ", ".join(f"{o['role']} {o['memory']}+{o['address']}"
                           for o in record["operands"])
        print(f"{record['instruction']:5} {record['engine']:8} "
              f"{record['operation']:10} {record['layer']:16} {places}")
        if record["engine"] == "host" or "planned" not in record:
            continue
        planned = record["planned"]
        end = max(end, planned["start"] + planned["cycles"])
        read += planned["read"]
        written += planned["written"]
    print(f"{len(listing['records'])} instructions, {end} cycles, {read} bytes "
          f"read and {written} written in {', '.join(sorted(outside))}")


if __name__ == "__main__":
    main()

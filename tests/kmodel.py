#!/usr/bin/env python3
"""kmodel.py - files of a machine's own format that amphora makes.

  given     recorded files of ../shared/data/k210 (where present) get new
            addresses (`asm --place`): the recorded outputs, without a fault, and
            never more active memory than before; yolo in its live peak

  networks  networks become files (`verify -t k210`): every code that a node
            makes is that of the machine's arithmetic, without a fault

  ours      the same of networks that kmodel_nets.py makes; their files have no
            byte that the container's rules do not explain: what disasm prints
            becomes the same bytes again

  bands     in less active memory layers run in bands of rows: the same outputs
            byte by byte, and what was refused before is made

  edges     several images are refused, and codes that are no bytes; a network
            without layers is right

--all: also the vendor's, and all lines. Needs the folder build.
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

import kmodel_nets

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "..", "shared", "data", "k210")
AMPHORA = os.environ.get("AMPHORA", os.path.join(ROOT, "build", "amphora"))
MACHINE = ["-t", "k210"]
BANDS = {"face_160": ("128KiB", "64KiB"), "mobilenet_v1_025_128": ("96KiB",),
         "squeezenet_224": ("1MiB",)}
SOME = ("ds_cnn", "face_160", "mobilenet_v2_035_96", "skip_320", "wide_320",
        "face_640", "dense")
YOLO = 737280  # bytes alive at once in its order
ALL = "--all" in sys.argv
SHARED = os.path.dirname(DATA)
NETWORKS = ("tflite/person_detect.tflite", "tflite/kws_ref_model.tflite",
            "tflite/pretrainedResnet_quant.tflite",
            "tflite/hello_world_int8.tflite", "quant/small/*/qdq.onnx")
MORE = ("quant/small/*/qlinear.onnx", "quant/accuracy/*/*qdq.onnx",
        "quant/accuracy/vww/vww_96_int8.tflite",
        "quant/mobilenet_v2_quant/model.onnx")
# Bilinear resizing of codes and transposed convolutions have no node.
REFUSED = ("fpn_resize", "deconv")


def amphora(*words):
    return subprocess.run([AMPHORA, *words], capture_output=True, text=True,
                          check=False)


def simulate(path, inputs, folder):
    run = amphora("simulate", path, *MACHINE, "--json", "-o", folder,
                  *[word for file in inputs for word in ("--input", file)])
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        return {"n_faults": 1, "faults": [run.stderr.strip()], "touched": {}}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def place(path, folder):
    """What is wrong with the file when it is placed anew, and the bytes of
    active memory before and after."""
    base = path[:-7]
    text, made = os.path.join(folder, "x.txt"), os.path.join(folder, "x.kmodel")
    for words in (["disasm", path, *MACHINE, "-o", text],
                  ["asm", text, *MACHINE, "--place", "-o", made]):
        run = amphora(*words)
        if run.returncode:
            return run.stderr.strip(), 0, 0
    was = simulate(path, [base + ".in.bin"], folder)["touched"].get("am", 0)
    report = simulate(made, [base + ".in.bin"], folder)
    now = report["touched"].get("am", 0)
    wrong = "; ".join(report["faults"][:2])
    for name in glob.glob(base + ".out*.bin"):
        made_name = name.rsplit(".", 2)[1] + ".bin"
        if read(name) != read(os.path.join(folder, made_name)):
            wrong += " another " + made_name
    if now > was:
        wrong += " more memory"
    if os.path.basename(base) == "yolo" and now != YOLO:
        wrong += f" {YOLO} bytes expected"
    return wrong, was, now


def given():
    paths = sorted(glob.glob(os.path.join(DATA, "*.kmodel")))
    if ALL:
        paths += sorted(glob.glob(os.path.join(DATA, "vendor", "*.kmodel")))
    bad = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            wrong, was, now = place(path, folder)
        bad += bool(wrong)
        if wrong or ALL:
            print(f"{os.path.basename(path)[:-7]}: active memory {was:,} -> "
                  f"{now:,} bytes {wrong}")
    print(f"given: {len(paths)} files placed anew, {bad} wrong")
    return bad


def verify(path, *more):
    """What is wrong with the file of a network, and the report."""
    run = amphora("verify", path, *MACHINE, "--json", *more)
    try:
        report = json.loads(run.stdout)
    except json.JSONDecodeError:
        return run.stderr.strip() or "no report", {}
    wrong = []
    if "codes_wrong" not in report:
        return run.stdout.strip()[:300], {}
    if report["codes_wrong"]:
        wrong.append(f"{report['codes_wrong']} codes differ")
    if report["faults"]:
        wrong.append(f"{report['faults']} faults")
    if not report["ok"] and not wrong:
        wrong.append("not ok")
    return ", ".join(wrong), report


def shown(report):
    return ", ".join(f"{key} {report.get(key)}" for key in (
        "nodes", "layers", "engine_layers", "outputs_other", "outputs_most",
        "active", "bytes"))


def networks():
    names = NETWORKS + (MORE if ALL else ())
    paths = [path for name in names
             for path in sorted(glob.glob(os.path.join(SHARED, name)))]
    bad = codes = 0
    for path in paths:
        wrong, report = verify(path)
        if any(name in path for name in REFUSED):
            named = "neither an engine nor the processor" in wrong
            wrong = "" if named else "it should be refused by name"
        bad += bool(wrong)
        codes += report.get("codes", 0)
        if wrong or ALL:
            name = "/".join(path.split("/")[-2:])
            print(f"{name}: {wrong} " + shown(report))
    print(f"networks: {len(paths)} files, {codes:,} codes, {bad} wrong")
    return bad


def explained(path, folder):
    """Whether the file that is made is what its text says."""
    name = os.path.basename(path).rsplit(".", 1)[0]
    made = os.path.join(folder, name + ".kmodel")
    text, again = made + ".txt", made + ".again"
    for words in (["compile", path, *MACHINE, "--emit", "kmodel", "-o", folder],
                  ["disasm", made, *MACHINE, "-o", text],
                  ["asm", text, *MACHINE, "-o", again]):
        run = amphora(*words)
        if run.returncode or run.stderr:
            return run.stderr.strip()
    return "" if read(made) == read(again) else "asm makes other bytes"


def ours():
    names = list(kmodel_nets.NETS) if ALL else SOME
    bad = codes = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = kmodel_nets.write(folder, name)
            wrong, report = verify(path)
            wrong = wrong or explained(path, folder)
        bad += bool(wrong)
        codes += report.get("codes", 0)
        if wrong or ALL:
            print(f"{name}: {wrong} " + shown(report))
    print(f"ours: {len(names)} networks, {codes:,} codes, {bad} wrong")
    return bad


def outputs(path, image, folder, size):
    """What the file computes that is made for so much active memory; and its
    number of nodes."""
    sized = ["--set", f"memories.am.size={size}"]
    folder = os.path.join(folder, size)
    made = os.path.join(
        folder, os.path.basename(path).rsplit(".", 1)[0] + ".kmodel")
    run = amphora("compile", path, *MACHINE, *sized, "--json", "-o", folder)
    if run.returncode:
        return run.stderr.strip(), 0
    run = amphora("simulate", made, *MACHINE, *sized, "--json", "--input",
                  image, "-o", folder)
    report = json.loads(run.stdout)
    if report["n_faults"]:
        return str(report["faults"][:2]), 0
    files = sorted(glob.glob(os.path.join(folder, "out*.bin")))
    return [read(file) for file in files], len(report["nodes"])


def bands():
    bad = files = 0
    for name, sizes in BANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = kmodel_nets.write(folder, name)
            with open(path, encoding="utf-8") as file:
                shape = json.load(file)["nodes"][0]["writes"][0]["shape"]
            image = os.path.join(folder, "image.bin")
            with open(image, "wb") as file:
                file.write(random.Random(name).randbytes(
                    shape[1] * shape[2] * shape[3]))
            want, nodes = outputs(path, image, folder, "2MiB")
            for size in sizes:
                got, more = outputs(path, image, folder, size)
                files += 1
                if not nodes or got != want or more <= nodes:
                    bad += 1
                    print(f"{name} in {size}: {more} nodes, {nodes} in 2 MiB, "
                          f"{got if isinstance(got, str) else 'other outputs'}")
    print(f"bands: {files} files, {bad} wrong")
    return bad


def passes_wide_codes(folder):
    """Whether an input of 16 bits that is a result as well becomes a file."""
    path = os.path.join(folder, "wide.json")
    codes = {"type": "int16", "scale": 0.5, "zero": 0}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"amphora": 1, "constants": [], "outputs": ["a"], "nodes": [
            {"op": "input", "name": "a", "reads": [], "writes": [
                {"name": "a", "shape": [1, 3, 4, 4], "quant": codes}]}]}, file)
    run = amphora("compile", path, *MACHINE, "-o", folder)
    return (run.returncode != 1 or '"a" (input)' not in run.stderr
            or "int16" not in run.stderr)


def edges():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = kmodel_nets.write(folder, "face_160")
        wrong, _ = verify(path, "--outputs", "image")
        bad += bool(wrong)
        with open(path, encoding="utf-8") as file:
            net = json.load(file)
        net["nodes"] = net["nodes"][:2]
        net["outputs"] = [net["nodes"][1]["name"]]
        for node in net["nodes"]:
            node["writes"][0]["shape"][0] = 2
        with open(path, "w", encoding="utf-8") as file:
            json.dump(net, file)
        run = amphora("compile", path, *MACHINE, "-o", folder)
        bad += run.returncode != 1 or "of one image" not in run.stderr
        bad += passes_wide_codes(folder)
    print(f"edges: {bad} wrong")
    return bad


def small():
    """Layers that are smaller than an engine takes, in memories of all sizes:
    right, or refused."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        net = kmodel_nets.Net("small", 3, 2, 3)
        at = net.conv("c", "image", 12, 1)
        at = net.conv("d", at, 12, 3, depth=True)
        net.outputs.append(net.conv("e", at, 4, 1))
        path = net.write(folder)
        for size in (1344, 1536, 4096, 1 << 16):
            run = amphora("verify", path, *MACHINE, "--set",
                          f"memories.am.size={size}")
            refused = run.returncode != 0 and "are needed at once" in run.stderr
            bad += run.returncode != 0 and not refused
            if run.returncode and not refused:
                print(f"small in {size}: {run.stderr or run.stdout}")
    print(f"small: {bad} wrong")
    return bad


def main():
    return 1 if (given() + networks() + ours() + bands() + edges()
                 + small()) else 0


if __name__ == "__main__":
    sys.exit(main())

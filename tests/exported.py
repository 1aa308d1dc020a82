#!/usr/bin/env python3
"""exported.py - modules of torch, exported as ONNX, against torch itself.

Kinds of networks that no other test has: recurrent ones (both directions, several
layers, cells step by step), text, speech and audio, spatial transformers,
detection's tails, point clouds, optical flow, video (3-D convolutions). Weights
and inputs are drawn with a seed. Compared is the reference evaluation, and the
simulated listing for xdnn-v3-96 where one can be made, to 1e-4 of the largest
value. --long: torchvision's networks for video and segmentation, too.
usage: exported.py [AMPHORA] [--long] [NAME...]    (Debian's python3-torchvision)
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings

PYTHON = "/usr/bin/python3"  # Debian's, which has torch
if sys.executable != PYTHON and os.path.exists(PYTHON):
    os.execv(PYTHON, [PYTHON, *sys.argv])
try:
    import numpy
    import torch
    import torch.nn.functional as F
    import torchvision
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

MACHINE = "xdnn-v3-96"
TOLERANCE = "1e-4"
LINE = "%-28s %8s %10s %s"


# ---- recurrent ----

class Recurrent(nn.Module):
    def __init__(self, kind, **config):
        super().__init__()
        self.layer = getattr(nn, kind)(12, 16, **config)
        ways = 2 if config.get("bidirectional") else 1
        self.last = nn.Linear(16 * ways, 5)

    def forward(self, x):
        return self.last(self.layer(x)[0])


class States(nn.Module):
    """All results of an LSTM that begins with given states."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(12, 16, 2)

    def forward(self, x, h, c):
        y, (h, c) = self.layer(x, (h, c))
        return y, h, c


class Decoder(nn.Module):
    """Cells, step by step."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LSTMCell(8, 12), nn.GRUCell(12, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, x):
        h, c, g = torch.zeros(1, 12), torch.zeros(1, 12), torch.zeros(1, 8)
        steps = []
        for _ in range(5):
            h, c = self.one(x, (h, c))
            g = self.two(h, g)
            x = self.last(g)
            steps.append(x)
        return torch.stack(steps, 1)


class Reader(nn.Module):
    """Pictures of lines of text: convolutions, then recurrent layers."""

    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2))
        self.read = nn.LSTM(32 * 8, 32, 2, bidirectional=True)
        self.last = nn.Linear(64, 37)

    def forward(self, x):
        y = self.look(x).permute(3, 0, 1, 2)
        y, _ = self.read(y.reshape(y.shape[0], 1, -1))
        return F.log_softmax(self.last(y), 2)


class Words(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.table, self.layer = nn.Embedding(100, 32), layer
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        y = self.layer(self.table(x))
        return self.last((y[0] if isinstance(y, tuple) else y).mean(1))


class Causal(nn.Module):
    """Tokens see what came before: scores elsewhere are -inf."""

    def __init__(self, value):
        super().__init__()
        self.three, self.last = nn.Linear(32, 96), nn.Linear(32, 32)
        self.value = value

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 4, c // 4).transpose(1, 2)
                   for y in self.three(x).split(c, 2))
        later = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        y = q @ k.transpose(-2, -1) / 3
        y = y.masked_fill(later, self.value).softmax(-1) @ v
        return self.last(y.transpose(1, 2).reshape(b, t, c))


class Padded(nn.Module):
    """The mask is an input."""

    def forward(self, x, mask):
        return x.masked_fill(mask > 0, float("-inf")).softmax(-1)


# ---- audio ----

class Enhancer(nn.Module):
    """Convolutions on a spectrogram around an LSTM over time."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 16, (5, 2), (2, 1), (2, 1))
        self.time = nn.LSTM(16 * 65, 64, batch_first=True)
        self.wide = nn.Linear(64, 16 * 65)
        self.up = nn.ConvTranspose2d(32, 2, (5, 2), (2, 1), (2, 0))

    def forward(self, x):
        y = F.elu(self.down(x))[..., :-1]
        b, c, f, t = y.shape
        z, _ = self.time(y.permute(0, 3, 1, 2).reshape(b, t, c * f))
        z = self.wide(z).reshape(b, t, c, f).permute(0, 2, 3, 1)
        return self.up(torch.cat([y, z], 1))


class Separator(nn.Module):
    """Dilated convolutions over samples, masks, and back to two voices."""

    def __init__(self):
        super().__init__()
        self.code = nn.Conv1d(1, 32, 16, 8, bias=False)
        self.norm = nn.GroupNorm(1, 32)
        self.block = nn.ModuleList(nn.Sequential(
            nn.Conv1d(32, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48),
            nn.Conv1d(48, 48, 3, padding=2 ** i, dilation=2 ** i, groups=48),
            nn.PReLU(), nn.Conv1d(48, 32, 1)) for i in range(4))
        self.mask = nn.Conv1d(32, 64, 1)
        self.back = nn.ConvTranspose1d(32, 1, 16, 8, bias=False)

    def forward(self, x):
        w = self.code(x)
        y = self.norm(w)
        for block in self.block:
            y = y + block(y)
        y = torch.sigmoid(self.mask(y)).reshape(1, 2, 32, -1) * w.unsqueeze(1)
        return self.back(y.reshape(2, 32, -1))


# ---- pictures ----

class Transformer(nn.Module):
    """A network that says how to look at its input (grid_sample)."""

    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2),
                                   nn.ReLU(), nn.Flatten(),
                                   nn.Linear(8 * 121, 6))
        self.last = nn.Conv2d(1, 10, 5)

    def forward(self, x):
        line = torch.linspace(-1, 1, 28)
        base = torch.stack([*torch.meshgrid(line, line, indexing="xy"),
                            torch.ones(28, 28)], 2).reshape(1, 784, 3)
        grid = torch.bmm(base, self.where(x).reshape(1, 2, 3).transpose(1, 2))
        return self.last(F.grid_sample(x, grid.reshape(1, 28, 28, 2),
                                       align_corners=False))


class Peaks(nn.Module):
    """A detector's tail: peaks of a map, the best, what stands there."""

    def __init__(self):
        super().__init__()
        self.map = nn.Conv2d(3, 9, 3, padding=1)

    def forward(self, x):
        heat = torch.sigmoid(self.map(x))
        heat = heat * (heat == F.max_pool2d(heat, 3, 1, 1)).float()
        values, at = torch.topk(heat.reshape(1, -1), 20)
        return values, at, torch.gather(self.map(x).reshape(1, -1), 1, at)


class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x, boxes):
        return torchvision.ops.roi_align(self.map(x), boxes, (3, 3), .5, 2,
                                         True)


class Siamese(nn.Module):
    """A picture's features as the kernel of a convolution over another's."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 8, 3)

    def forward(self, part, whole):
        return F.conv2d(self.look(whole), self.look(part))


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 64, 1), nn.ReLU())
        self.nine, self.look = nn.Linear(64, 9), nn.Conv1d(3, 128, 1)

    def forward(self, x):
        m = self.nine(self.turn(x).max(2)[0]).reshape(-1, 3, 3)
        y = torch.bmm(x.transpose(2, 1), m).transpose(2, 1)
        return self.look(y).max(2)[0]


class Flow(nn.Module):
    """One picture warped onto another."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 8, 3, 2, 1)
        self.move = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, a, b):
        a, b = self.look(a), self.look(b)
        move = self.move(torch.cat([a, b], 1))
        h, w = (int(n) for n in b.shape[2:])
        grid = torch.stack([
            torch.linspace(-1, 1, w).reshape(1, w).expand(h, w),
            torch.linspace(-1, 1, h).reshape(h, 1).expand(h, w)], 2)[None]
        warped = F.grid_sample(b, grid + move.permute(0, 2, 3, 1) * .1,
                               padding_mode="border", align_corners=True)
        return (a * warped).sum(1, keepdim=True)


class Scattered(nn.Module):
    def forward(self, x, at):
        return torch.zeros(4, 10).scatter_add(1, at, x).cumsum(1)


# ---- video ----

def video(groups):
    return nn.Sequential(
        nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(),
        nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(8, 16, 3, stride=2, padding=1, groups=groups), nn.ReLU(),
        nn.Conv3d(16, 16, (3, 1, 1), padding=(1, 0, 0)),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5))


def generator():
    return nn.Sequential(
        nn.ConvTranspose3d(8, 16, 4, 2, 1), nn.BatchNorm3d(16), nn.ReLU(),
        nn.ConvTranspose3d(16, 3, 4, 2, 1), nn.Tanh())


class Outer(nn.Module):
    """The result that torchvision's networks for segmentation name "out"."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)["out"]


# ---- the table ----

def drawn(*shape):
    return lambda: torch.randn(*shape)


def whole(most, *shape):
    return lambda: torch.randint(0, most, shape)


SEQUENCE = drawn(7, 1, 12)
NETS = {
    "rnn": (lambda: Recurrent("RNN"), SEQUENCE),
    "rnn relu": (lambda: Recurrent("RNN", nonlinearity="relu"), SEQUENCE),
    "lstm": (lambda: Recurrent("LSTM"), SEQUENCE),
    "lstm without bias": (lambda: Recurrent("LSTM", bias=False), SEQUENCE),
    "lstm both ways, two layers": (lambda: Recurrent(
        "LSTM", num_layers=2, bidirectional=True), SEQUENCE),
    "lstm, batch first": (lambda: Recurrent("LSTM", batch_first=True),
                          drawn(1, 7, 12)),
    "lstm with states": (States, drawn(7, 1, 12), drawn(2, 1, 16),
                         drawn(2, 1, 16)),
    "gru both ways": (lambda: Recurrent("GRU", bidirectional=True), SEQUENCE),
    "gru, batch of 3": (lambda: Recurrent("GRU"), drawn(5, 3, 12)),
    "decoder of cells": (Decoder, drawn(1, 8)),
    "line of text": (Reader, drawn(1, 1, 32, 64)),
    "words, gru": (lambda: Words(nn.GRU(32, 32, batch_first=True)),
                   whole(100, 1, 12)),
    "words, attention": (lambda: Words(nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)),
        whole(100, 1, 12)),
    **{"causal, %g" % value: (lambda value=value: Causal(value),
                              drawn(1, 9, 32))
       for value in (-math.inf, -3.4e38, -1e4)},
    "padded": (Padded, drawn(1, 4, 6), whole(2, 1, 4, 6)),
    "enhancer": (Enhancer, drawn(1, 2, 129, 10)),
    "separator": (Separator, drawn(1, 1, 800)),
    "spatial transformer": (Transformer, drawn(1, 1, 28, 28)),
    "peaks": (Peaks, drawn(1, 3, 16, 16)),
    "boxes": (Boxes, drawn(1, 3, 16, 16), lambda: torch.tensor(
        [[0, 2., 3, 20, 25], [0, 0, 0, 31, 31]])),
    "siamese": (Siamese, drawn(1, 3, 7, 7), drawn(1, 3, 20, 20)),
    "points": (Points, drawn(1, 3, 64)),
    "flow": (Flow, drawn(1, 3, 16, 16), drawn(1, 3, 16, 16)),
    "scattered": (Scattered, drawn(4, 3), whole(10, 4, 3)),
    "video": (lambda: video(1), drawn(1, 3, 6, 16, 16)),
    "video in groups": (lambda: video(4), drawn(1, 3, 6, 16, 16)),
    "video's generator": (generator, drawn(1, 8, 2, 4, 4)),
}
LONG = {
    **{name: (lambda name=name: getattr(torchvision.models.video, name)(),
              drawn(1, 3, 8, 56, 56))
       for name in ("r3d_18", "mc3_18", "r2plus1d_18")},
    **{name: (lambda name=name: Outer(getattr(
        torchvision.models.segmentation, name)(weights_backbone=None)),
        drawn(1, 3, 64, 64))
       for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large",
                    "lraspp_mobilenet_v3_large")},
}


# ---- running ----

def settled(module):
    """Statistics of batch normalisation that are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_(0, .1)
            part.running_var.uniform_(.5, 1.5)
    return module.eval()


def flat(results):
    return [results] if isinstance(results, torch.Tensor) else \
        [one for part in results for one in flat(part)]


def saved(path, tensor):
    numpy.save(path, tensor.numpy().astype("<f4"))
    return path


def judge(amphora, folder, command, model, arguments):
    done = subprocess.run([amphora, command, model, *arguments, "--json",
                           "--tolerance", TOLERANCE], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          stdin=subprocess.DEVNULL, cwd=folder)
    try:
        error = json.loads(done.stdout).get("max_rel_error")
    except ValueError:
        error = None
    return done.returncode, error, done.stderr.strip().split("\n")[0][:90]


def run(amphora, name, make, inputs):
    torch.manual_seed(1)
    module, values = settled(make()), [draw() for draw in inputs]
    with torch.no_grad():
        wanted = flat(module(*values))
    with tempfile.TemporaryDirectory() as folder:
        model = folder + "/net.onnx"
        torch.onnx.export(module, tuple(values), model, opset_version=16)
        arguments = []
        for i, value in enumerate(values):
            arguments += ["--input", saved(f"{folder}/in{i}.npy", value)]
        for i, value in enumerate(wanted):
            arguments += ["--expect", saved(f"{folder}/out{i}.npy", value)]
        code, error, said = judge(amphora, folder, "eval", model, arguments)
        listing, _, why = judge(amphora, folder, "verify", model,
                                [*arguments, "-t", MACHINE])
    print(LINE % (name, "%.1e" % error if error is not None else "-",
                  "verified" if listing == 0 else "no", said or why))
    return code == 0 and error is not None and listing in (0, 3)


def main():
    arguments = sys.argv[1:]
    long = "--long" in arguments
    names = [a for a in arguments if not a.startswith("-")]
    amphora = os.path.abspath(
        names.pop(0) if names and os.path.exists(names[0]) else
        "build/amphora")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    nets = {**NETS, **(LONG if long or names else {})}
    print(LINE % ("module", "error", "listing", ""))
    good = [run(amphora, name, *net[:1], net[1:]) for name, net in nets.items()
            if not names or any(part in name for part in names)]
    print(f"{sum(good)} of {len(good)} agree with torch")
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())

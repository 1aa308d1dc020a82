#!/usr/bin/env python3
"""modern.py - networks of after 2018, exported by torch, on vision-npu.

Detectors (split, concat, SPPF, softmax over bins, decoded boxes), decoders with
causal masks, rotary embeddings, grouped queries and caches of keys and values,
networks of speech, diffusion, mixers, gates by row, column and pixel. Weights
and inputs are drawn with a seed. Compared is the simulated listing with torch,
to 1e-4 of the largest value; none has a layer of the host but those said.
usage: modern.py [AMPHORA] [NAME...]    (Debian's python3-torchvision)
"""
import json
import os
import subprocess
import sys
import tempfile
import warnings

PYTHON = "/usr/bin/python3"  # Debian's, which has torch
if sys.executable != PYTHON and os.path.exists(PYTHON):
    os.execv(PYTHON, [PYTHON, *sys.argv])
try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)
from exported import Recurrent, drawn, flat, saved, settled

MACHINE = "vision-npu"
TOLERANCE = "1e-4"


# ---- a detector ----

class Conv(nn.Sequential):
    def __init__(self, k, n, kernel=1, stride=1):
        super().__init__(nn.Conv2d(k, n, kernel, stride, kernel // 2,
                                   bias=False), nn.BatchNorm2d(n), nn.SiLU())


class Split(nn.Module):
    """Half of the channels goes on, through blocks whose results all stay."""

    def __init__(self, k, n, blocks, adds):
        super().__init__()
        self.half, self.adds = n // 2, adds
        self.first = Conv(k, n)
        self.blocks = nn.ModuleList(nn.Sequential(
            Conv(n // 2, n // 2, 3), Conv(n // 2, n // 2, 3))
            for _ in range(blocks))
        self.last = Conv((2 + blocks) * (n // 2), n)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.adds else y)
        return self.last(torch.cat(parts, 1))


class Pools(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.last = Conv(n, n // 2), Conv(2 * n, n)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Head(nn.Module):
    """Distances as means over 16 bins; boxes around points of three grids."""

    def __init__(self, wide, classes):
        super().__init__()
        self.box = nn.ModuleList(nn.Sequential(
            Conv(n, 64, 3), nn.Conv2d(64, 64, 1)) for n in wide)
        self.kind = nn.ModuleList(nn.Sequential(
            Conv(n, n, 3), nn.Conv2d(n, classes, 1)) for n in wide)
        self.bins = nn.Conv2d(16, 1, 1, bias=False)
        self.bins.weight.data[:] = torch.arange(16.).view(1, 16, 1, 1)
        self.parts = 64, classes

    def forward(self, maps):
        points, strides, rows = [], [], []
        for i, x in enumerate(maps):
            h, w = (int(n) for n in x.shape[2:])
            grid = torch.meshgrid(torch.arange(h) + .5, torch.arange(w) + .5,
                                  indexing="ij")
            points.append(torch.stack(grid[::-1], -1).view(-1, 2))
            strides.append(torch.full((h * w, 1), 8. * 2 ** i))
            both = torch.cat([self.box[i](x), self.kind[i](x)], 1)
            rows.append(both.view(1, sum(self.parts), -1))
        box, kind = torch.cat(rows, 2).split(self.parts, 1)
        n = box.shape[2]
        box = box.view(1, 4, 16, n).transpose(2, 1).softmax(1)
        near, far = self.bins(box).view(1, 4, n).chunk(2, 1)
        points = torch.cat(points).transpose(0, 1)[None]
        a, b = points - near, points + far
        box = torch.cat([(a + b) / 2, b - a], 1)
        return torch.cat([box * torch.cat(strides).transpose(0, 1),
                          kind.sigmoid()], 1)


class Detector(nn.Module):
    """YOLOv8's shape, a quarter as wide."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(Conv(3, 8, 3, 2), Conv(8, 16, 3, 2),
                               Split(16, 16, 1, True), Conv(16, 32, 3, 2),
                               Split(32, 32, 2, True))
        self.b = nn.Sequential(Conv(32, 48, 3, 2), Split(48, 48, 1, True))
        self.c = nn.Sequential(Conv(48, 64, 3, 2), Split(64, 64, 1, True),
                               Pools(64))
        self.up = Split(112, 48, 1, False), Split(80, 32, 1, False)
        self.down = Conv(32, 32, 3, 2), Conv(48, 48, 3, 2)
        self.out = Split(80, 48, 1, False), Split(112, 64, 1, False)
        self.rest = nn.ModuleList([*self.up, *self.down, *self.out])
        self.head = Head((32, 48, 64), 20)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = self.c(b)
        p = self.up[0](torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        q = self.up[1](torch.cat([F.interpolate(p, scale_factor=2), a], 1))
        p = self.out[0](torch.cat([self.down[0](q), p], 1))
        r = self.out[1](torch.cat([self.down[1](p), c], 1))
        return self.head([q, p, r])


# ---- decoders ----

class Rms(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n) + .5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(
            x.pow(2).mean(-1, keepdim=True) + 1e-6))


def half_turned(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Decoder(nn.Module):
    """Rotary embeddings, grouped queries, a causal mask; with `past` tokens one
    step: keys and values of these are inputs, and with the new ones outputs.
    """

    def __init__(self, heads=4, groups=2, past=0):
        super().__init__()
        self.heads, self.groups, self.past = heads, groups, past
        self.norm = nn.ModuleList([Rms(64), Rms(64)])
        self.q = nn.Linear(64, 64, bias=False)
        self.kv = nn.ModuleList(nn.Linear(64, 16 * groups, bias=False)
                                for _ in range(2))
        self.o = nn.Linear(64, 64, bias=False)
        self.wide = nn.ModuleList(nn.Linear(64, 96) for _ in range(2))
        self.back = nn.Linear(96, 64)

    def turned(self, x):
        at = torch.arange(self.past, self.past + x.shape[2]).float()
        angle = torch.outer(at, 1 / 10000 ** (torch.arange(0, 16, 2) / 16))
        angle = torch.cat([angle, angle], -1)[None, None]
        return x * angle.cos() + half_turned(x) * angle.sin()

    def shared(self, x):
        n = self.heads // self.groups
        x = x[:, :, None].expand(1, self.groups, n, x.shape[2], 16)
        return x.reshape(1, self.heads, -1, 16)

    def forward(self, x, keys=None, values=None):
        t, y = x.shape[1], self.norm[0](x)
        q, k, v = (layer(y).view(1, t, -1, 16).transpose(1, 2)
                   for layer in (self.q, *self.kv))
        q, k = self.turned(q), self.turned(k)
        if self.past:
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        score = q @ self.shared(k).transpose(2, 3) / 4
        if t > 1:
            score = score + torch.full((t, t), -1e9).triu(1)
        y = score.softmax(-1) @ self.shared(v)
        x = x + self.o(y.transpose(1, 2).reshape(1, t, 64))
        y = self.norm[1](x)
        x = x + self.back(F.silu(self.wide[0](y)) * self.wide[1](y))
        return (x, k, v) if self.past else x


class Masked(nn.Module):
    """Scores of what comes later are -inf; one product makes q, k and v."""

    def __init__(self):
        super().__init__()
        self.norm, self.three = nn.LayerNorm(48), nn.Linear(48, 144)
        self.o = nn.Linear(48, 48)

    def forward(self, x):
        t = x.shape[1]
        q, k, v = (y.view(1, t, 3, 16).transpose(1, 2)
                   for y in self.three(self.norm(x)).split(48, 2))
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        score = (q @ k.transpose(2, 3) / 4).masked_fill(later, -torch.inf)
        y = score.softmax(-1) @ v
        return x + self.o(y.transpose(1, 2).reshape(1, t, 48))


class Step(nn.Module):
    """The same, one token at a time."""

    def __init__(self):
        super().__init__()
        self.three, self.o = nn.Linear(48, 144), nn.Linear(48, 48)

    def forward(self, x, keys, values):
        q, k, v = (y.view(1, 1, 3, 16).transpose(1, 2)
                   for y in self.three(x).split(48, 2))
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y = (q @ k.transpose(2, 3) / 4).softmax(-1) @ v
        return x + self.o(y.transpose(1, 2).reshape(1, 1, 48)), k, v


# ---- speech, diffusion, mixers ----

class Conformer(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.norm = nn.ModuleList(nn.LayerNorm(n) for _ in range(2))
        self.wide = nn.Sequential(nn.Linear(n, 2 * n), nn.SiLU(),
                                  nn.Linear(2 * n, n))
        self.gate, self.last = nn.Conv1d(n, 2 * n, 1), nn.Conv1d(n, n, 1)
        self.time = nn.Sequential(
            nn.Conv1d(n, n, 7, padding=3, groups=n), nn.BatchNorm1d(n),
            nn.SiLU())

    def forward(self, x):
        x = x + self.wide(self.norm[0](x)) / 2
        y = F.glu(self.gate(self.norm[1](x).transpose(1, 2)), 1)
        return x + self.last(self.time(y)).transpose(1, 2)


class Diffusion(nn.Module):
    """Group norms, a number by channel, words of another length, GEGLU."""

    def __init__(self, n=32):
        super().__init__()
        self.norm = nn.ModuleList(nn.GroupNorm(8, n) for _ in range(2))
        self.look = nn.Conv2d(n, n, 3, padding=1)
        self.time = nn.Linear(16, n)
        self.q, self.o = nn.Linear(n, n), nn.Linear(n, n)
        self.k, self.v = nn.Linear(24, n), nn.Linear(24, n)
        self.wide, self.back = nn.Linear(n, 4 * n), nn.Linear(2 * n, n)

    def forward(self, x, time, words):
        x = x + self.look(F.silu(self.norm[0](x))) + \
            self.time(time)[:, :, None, None]
        n, h, w = x.shape[1:]
        y = self.norm[1](x).reshape(1, n, h * w).transpose(1, 2)
        q, k, v = (z.view(1, -1, 4, n // 4).transpose(1, 2)
                   for z in (self.q(y), self.k(words), self.v(words)))
        z = (q @ k.transpose(2, 3) * .35).softmax(-1) @ v
        y = y + self.o(z.transpose(1, 2).reshape(1, h * w, n))
        a, b = self.wide(y).chunk(2, -1)
        y = y + self.back(a * F.gelu(b))
        return x + y.transpose(1, 2).reshape(1, n, h, w)


class Mixer(nn.Module):
    """Products over tokens, and over channels."""

    def __init__(self, n=32, t=16):
        super().__init__()
        self.cut = nn.Conv2d(3, n, 8, 8)
        self.norm = nn.LayerNorm(n)
        self.tokens = nn.Sequential(nn.Linear(t, 24), nn.GELU(),
                                    nn.Linear(24, t))
        self.last = nn.Linear(n, 10)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x.mean(1))


class Pooled(nn.Module):
    """What a pool changes; norms over all channels and pixels."""

    def __init__(self, n=16):
        super().__init__()
        self.cut, self.norm = nn.Conv2d(3, n, 7, 4, 2), nn.GroupNorm(1, n)
        self.own = nn.InstanceNorm2d(n, affine=True)
        self.by = nn.Parameter(torch.rand(n, 1, 1))

    def forward(self, x):
        x = self.cut(x)
        y = self.norm(x)
        y = F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y
        return self.own(x + self.by * y)


class Resized(nn.Module):
    """Bilinear, between corners and between centres, by any factor."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 8, 3, padding=1)
        self.last = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        x = F.relu(self.look(x))
        y = [F.interpolate(x, size=(11, 14), mode="bilinear", align_corners=c)
             for c in (False, True)]
        return F.interpolate(self.last(torch.cat(y, 1)), scale_factor=2,
                             mode="bilinear")


# ---- gates ----

class Gates(nn.Module):
    """By pixel; by row and by column."""

    def __init__(self, n=16):
        super().__init__()
        self.look, self.where = nn.Conv2d(3, n, 3, 2, 1), nn.Conv2d(2, 1, 7,
                                                                   padding=3)
        self.both = nn.Conv2d(n, 8, 1)
        self.rows, self.columns = nn.Conv2d(8, n, 1), nn.Conv2d(8, n, 1)

    def forward(self, x):
        x = self.look(x)
        x = x * torch.sigmoid(self.where(torch.cat(
            [x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)))
        h, w = (int(n) for n in x.shape[2:])
        y = torch.cat([x.mean(3, keepdim=True),
                       x.mean(2, keepdim=True).transpose(2, 3)], 2)
        a, b = F.hardswish(self.both(y)).split([h, w], 2)
        return x * self.rows(a).sigmoid() * \
            self.columns(b.transpose(2, 3)).sigmoid()


class Bands(nn.Module):
    """A norm by band of frequencies; what is the same for all of them."""

    def __init__(self, n=8):
        super().__init__()
        self.look = nn.Conv2d(1, n, 5, (2, 1), 2)
        self.norm = nn.BatchNorm2d(5 * n)
        self.time = nn.Conv2d(n, n, (1, 3), padding=(0, 1), groups=n)

    def forward(self, x):
        x = self.look(x)
        n, f, t = (int(k) for k in x.shape[1:])
        y = self.norm(x.reshape(1, 5 * n, f // 5, t)).reshape(1, n, f, t)
        return F.relu(x + y + self.time(y.mean(2, keepdim=True)))


class Time(nn.Module):
    """Causal convolutions with a way around them; the last moment."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv1d(4, 8, 3), nn.Conv1d(8, 8, 3, dilation=2)
        self.around, self.last = nn.Conv1d(4, 8, 1), nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu(self.one(F.pad(x, (2, 0))))
        y = F.relu(self.two(F.pad(y, (4, 0)))) + self.around(x)
        return self.last(y[:, :, -1])


class Unfolded(nn.Module):
    """MobileViT: attention among pixels that lie apart; pixels from channels.
    """

    def __init__(self, n=16):
        super().__init__()
        self.look, self.last = nn.Conv2d(3, n, 3, 2, 1), nn.Conv2d(n, 12, 1)
        self.three, self.o = nn.Linear(n, 3 * n), nn.Linear(n, n)

    def forward(self, x):
        x = self.look(x)
        n, h, w = (int(k) for k in x.shape[1:])
        y = x.reshape(n * h // 2, 2, w // 2, 2).transpose(1, 2)
        y = y.reshape(1, n, h * w // 4, 4).transpose(1, 3)
        y = y.reshape(4, h * w // 4, n)
        q, k, v = (z.reshape(4, -1, 2, n // 2).transpose(1, 2)
                   for z in self.three(y).chunk(3, -1))
        z = (q @ k.transpose(2, 3) / 3).softmax(-1) @ v
        y = y + self.o(z.transpose(1, 2).reshape(4, -1, n))
        y = y.reshape(1, 4, h * w // 4, n).transpose(1, 3)
        y = y.reshape(n * h // 2, w // 2, 2, 2).transpose(1, 2)
        return F.pixel_shuffle(self.last(y.reshape(1, n, h, w) + x), 2)


class Classifier(nn.Module):
    """ViT: patches behind a token of its own, which alone is read at last."""

    def __init__(self, n=16, tokens=17):
        super().__init__()
        self.patch, self.last = nn.Conv2d(3, n, 4, 4), nn.Linear(n, 5)
        self.token = nn.Parameter(torch.randn(1, 1, n))
        self.at = nn.Parameter(torch.randn(1, tokens, n))
        self.norm, self.three = nn.LayerNorm(n), nn.Linear(n, 3 * n)
        self.o = nn.Linear(n, n)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token, x), 1) + self.at
        n, c = (int(k) for k in x.shape[1:])
        q, k, v = (z.reshape(1, n, 2, c // 2).transpose(1, 2)
                   for z in self.three(self.norm(x)).chunk(3, -1))
        z = (q @ k.transpose(2, 3) / 3).softmax(-1) @ v
        x = x + self.o(z.transpose(1, 2).reshape(1, n, c))
        return self.last(x[:, 0])


class Generator(nn.Module):
    """Transposed convolutions that are cut more before than behind; gates of
    one padding that two convolutions read."""

    def __init__(self, n=8):
        super().__init__()
        self.down = nn.Conv2d(3, n, 3, 2, 1)
        self.one, self.two = nn.Conv2d(n, n, 3), nn.Conv2d(n, n, 3)
        self.up = nn.ConvTranspose2d(n, 3, 3, 2, 1, 1)

    def forward(self, x):
        y = F.pad(F.relu(self.down(x)), (2, 0, 1, 1))
        return self.up(torch.tanh(self.one(y)) * torch.sigmoid(self.two(y)))


class Widened(nn.Module):
    """Channels of zeros behind those of a shortcut, as BlazeFace has them;
    a split of a volume of more than half of active memory."""

    def __init__(self):
        super().__init__()
        self.one, self.two = Conv(3, 4, 3), Conv(4, 6, 3, 2)
        self.wide = Conv(6, 24)
        self.last = nn.Conv2d(12, 2, 1)

    def forward(self, x):
        y = self.one(x)
        y = self.two(y) + F.pad(F.max_pool2d(y, 2), (0, 0, 0, 0, 0, 2))
        a, b = self.wide(y).chunk(2, 1)
        return self.last(a * torch.sigmoid(b))


class Spectrum(nn.Module):
    """A short-time Fourier transform as a convolution of far steps, as
    networks of speech begin with."""

    def __init__(self, n=9):
        super().__init__()
        self.waves = nn.Conv1d(1, 2 * n, 96, 40, 48, bias=False)
        self.last = nn.Conv1d(n, 4, 3, padding=1)

    def forward(self, x):
        a, b = self.waves(x).chunk(2, 1)
        return self.last(torch.log(torch.sqrt(a ** 2 + b ** 2) + 1e-2))


class Functions(nn.Module):
    """Functions by table, quotients, bounds, powers."""

    def __init__(self, n=8):
        super().__init__()
        self.one, self.two = Conv(3, n, 3), Conv(n, n, 3)

    def forward(self, x):
        y = self.one(x)
        z = torch.exp(-y.abs()) / (1 + self.two(y).pow(2)).sqrt()
        z = torch.log(z + 1.5) * torch.sin(y) + torch.cos(y).pow(3)
        z = torch.maximum(z, torch.tensor(-.5)) + torch.erf(y)
        return z / (1 + z.mean((2, 3), keepdim=True).abs()) + torch.atan(z)


PAST = drawn(1, 2, 7, 16)
NETS = {  # a module, its inputs, layers of the host
    "detector": (Detector, [drawn(1, 3, 64, 64)], 0),
    "decoder": (Decoder, [drawn(1, 12, 64)], 0),
    "decoder, all heads": (lambda: Decoder(groups=4), [drawn(1, 12, 64)], 0),
    "decoder, a step": (lambda: Decoder(past=7), [drawn(1, 1, 64), PAST,
                                                  PAST], 0),
    "masked": (Masked, [drawn(1, 10, 48)], 0),
    "a step": (Step, [drawn(1, 1, 48), drawn(1, 3, 9, 16),
                      drawn(1, 3, 9, 16)], 0),
    "conformer": (Conformer, [drawn(1, 12, 32)], 0),
    "diffusion": (Diffusion, [drawn(1, 32, 6, 4), drawn(1, 16),
                              drawn(1, 5, 24)], 0),
    "mixer": (Mixer, [drawn(1, 3, 32, 32)], 0),
    "resized": (Resized, [drawn(1, 3, 6, 9)], 0),
    "pooled": (Pooled, [drawn(1, 3, 32, 32)], 0),
    "gates": (Gates, [drawn(1, 3, 16, 12)], 0),
    "bands": (Bands, [drawn(1, 1, 20, 12)], 0),
    "time": (Time, [drawn(1, 4, 24)], 0),
    "unfolded": (Unfolded, [drawn(1, 3, 16, 12)], 0),
    "classifier": (Classifier, [drawn(1, 3, 16, 16)], 0),
    "generator": (Generator, [drawn(1, 3, 16, 12)], 0),
    "widened": (Widened, [drawn(1, 3, 448, 448)], 0),
    "spectrum": (Spectrum, [drawn(1, 1, 500)], 0),
    "functions": (Functions, [drawn(1, 3, 16, 12)], 0),
}


def command(amphora, name, model, arguments, machine):
    done = subprocess.run([amphora, name, model, "-t", machine, *arguments,
                           "--json"], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL)
    try:
        return json.loads(done.stdout), done.returncode, done.stderr
    except ValueError:
        return {}, done.returncode, done.stderr


OTHER = "xdnn-v3-96"  # has no engine for most of it
HOSTS = {"time": 5, "masked": 9, "conformer": 10}


def recurrent():
    return Recurrent("LSTM")


def judged(amphora, model, arguments, machine, folder):
    """Verified or not, its error, layers of the host, what was said, the
    object."""
    found, code, said = command(amphora, "verify", model, arguments, machine)
    made, _, _ = command(amphora, "compile", model, ["-o", folder], machine)
    return (code == 0, found.get("max_rel_error") or 0,
            len(made.get("host_layers", [None])), said.split("\n")[0][:80],
            made)


def exported_to(folder, make, inputs):
    torch.manual_seed(2)
    module, values = settled(make()), [draw() for draw in inputs]
    with torch.no_grad():
        wanted = flat(module(*values))
    model = folder + "/net.onnx"
    torch.onnx.export(module, tuple(values), model, opset_version=16)
    arguments = ["--tolerance", TOLERANCE]
    for i, value in enumerate(values):
        arguments += ["--input", saved(f"{folder}/in{i}.npy", value)]
    for i, value in enumerate(wanted):
        arguments += ["--expect", saved(f"{folder}/out{i}.npy", value)]
    return model, arguments


def run(amphora, name, make, inputs, most):
    with tempfile.TemporaryDirectory() as folder:
        model, arguments = exported_to(folder, make, inputs)
        good, error, host, said, _ = judged(amphora, model, arguments, MACHINE,
                                            folder)
        ok = good and host == most
        print("%-20s %s %.1e, %d layers of the host %s" % (
            name, "ok  " if ok else "WRONG", error, host, said))
        if name in HOSTS:
            good, error, host, said, _ = judged(amphora, model, arguments,
                                                OTHER, folder)
            print("%-20s %s %.1e, %d layers of the host %s" % (
                "... on " + OTHER, "ok  " if good and host == HOSTS[name] else
                "WRONG", error, host, said))
            ok = ok and good and host == HOSTS[name]
    return ok


def counts(amphora):
    """The host's products are those of its recurrent layers, and of attention.
    """
    good = []
    for name, make, inputs, products in (
            ("lstm", recurrent, [drawn(7, 1, 12)], 7 * 4 * 16 * (12 + 16)),
            ("masked", Masked, [drawn(1, 10, 48)], 2 * 10 * 10 * 48)):
        with tempfile.TemporaryDirectory() as folder:
            model, arguments = exported_to(folder, make, inputs)
            made = judged(amphora, model, arguments, OTHER, folder)[4]
        good.append(made.get("host_products") == products)
        print("%-20s %s %s products on the host of %s" % (
            name, "ok  " if good[-1] else "WRONG", made.get("host_products"),
            OTHER))
    return good


def bounds(amphora):
    """Where all stays in active memory, no listing moves less: of channels and
    pixels that are taken apart, all are needed."""
    good = []
    for name in ("detector", "mixer", "gates", "widened",
                 "classifier"):
        make, inputs, _ = NETS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, arguments = exported_to(folder, make, inputs)
            made = judged(amphora, model, arguments, MACHINE, folder)[4]
        moved, bound = made.get("ddr_moved_bytes"), made.get("ddr_bound_bytes")
        good.append(moved == bound)
        print("%-20s %s %s bytes moved, %s at least" % (
            name, "ok  " if good[-1] else "WRONG", moved, bound))
    return good


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    amphora = os.path.abspath(
        names.pop(0) if names and os.path.exists(names[0]) else
        "build/amphora")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    good = [run(amphora, name, *net) for name, net in NETS.items()
            if not names or any(part in name for part in names)]
    good += [] if names else counts(amphora) + bounds(amphora)
    print(f"{sum(good)} of {len(good)} as they should be")
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())

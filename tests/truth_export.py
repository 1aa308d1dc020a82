#!/usr/bin/env python3
"""truth_export.py - networks of torchvision as ONNX files, for truth_onnx.py.

In: nothing but a seed. Out: DIR/NAME.onnx, opset 13, for each network of the
table that is not there yet. Weights are torchvision's initial ones, drawn with
the seed; the statistics of batch normalisation are those of one batch of noise
(so that activations keep their size through 150 layers), then changed at
random by a few ten percent. NAME.raw keeps BatchNormalization as nodes of its
own; NAME.open leaves the batch open, which gives chains of Shape and Gather.

The light models of ../shared/data/onnx have weights that are all the same, and
so have their logits: NAME.seeded is one with drawn weights and no softmax.

usage: truth_export.py DIR [NAME...]      (python3-torchvision, python3-onnx)
"""
import glob
import os
import sys
import time
import warnings

import numpy
import onnx
import torch
import torchvision
from onnx import numpy_helper
from torch import nn
from torch.onnx import TrainingMode

LIGHT = "../shared/data/onnx/light_*.onnx"
SEED = 1234
OPSET = 13


class UNet(nn.Module):
    """Ronneberger et al. 2015 with padded convolutions, `width` channels at
    the top, four levels."""

    def __init__(self, width=16, classes=5):
        super().__init__()
        sizes = [width << i for i in range(4)]
        self.down = nn.ModuleList(
            self.block(a, b) for a, b in zip([3] + sizes, sizes))
        self.bottom = self.block(sizes[-1], 2 * sizes[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * s, s, 2, 2)
                                for s in reversed(sizes))
        self.join = nn.ModuleList(self.block(2 * s, s)
                                  for s in reversed(sizes))
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def block(a, b):
        parts = []
        for n in (a, b):
            parts += [nn.Conv2d(n, b, 3, padding=1, bias=False),
                      nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
        return nn.Sequential(*parts)

    def forward(self, x):
        skips = []
        for down in self.down:
            skips.append(down(x))
            x = nn.functional.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class FirstOutput(nn.Module):
    """Segmentation networks return a dictionary."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)["out"]


def classifier(name, **options):
    return lambda: getattr(torchvision.models, name)(weights=None, **options)


def segmenter(name):
    make = getattr(torchvision.models.segmentation, name)
    return lambda: FirstOutput(
        make(weights=None, weights_backbone=None, num_classes=21))


PLAIN = ["resnet18", "resnet50", "resnet152", "mobilenet_v2",
         "mobilenet_v3_large", "mobilenet_v3_small", "squeezenet1_0",
         "squeezenet1_1", "densenet121", "vgg16", "vgg11_bn", "alexnet",
         "efficientnet_b0", "shufflenet_v2_x1_0", "mnasnet1_0",
         "regnet_y_400mf", "regnet_x_400mf", "resnext50_32x4d",
         "convnext_tiny", "wide_resnet50_2", "resnet34", "densenet161",
         "mnasnet0_5", "shufflenet_v2_x0_5"]
# Name: maker, size of the image.
NETWORKS = {name: (classifier(name), 224) for name in PLAIN}
NETWORKS.update({
    "googlenet": (classifier("googlenet", aux_logits=False,
                             init_weights=False), 224),
    "inception_v3": (classifier("inception_v3", aux_logits=False,
                                init_weights=False), 299),
    "fcn_resnet50": (segmenter("fcn_resnet50"), 224),
    "deeplabv3_mobilenet_v3_large":
        (segmenter("deeplabv3_mobilenet_v3_large"), 224),
    "lraspp_mobilenet_v3_large":
        (segmenter("lraspp_mobilenet_v3_large"), 224),
    "unet16": (UNet, 128),
    "vit_b_32": (classifier("vit_b_32"), 224),
    "swin_t": (classifier("swin_t"), 224),
})
# In evaluation torch takes a path through attention that it cannot export.
TRAINING = ["vit_b_32"]
RAW = ["resnet18", "googlenet", "mobilenet_v2"]
OPEN = ["resnet18", "shufflenet_v2_x1_0", "deeplabv3_mobilenet_v3_large"]


def settle(model, size):
    """Statistics from a batch of noise, then changed at random."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    model.train()
    with torch.no_grad():
        model(torch.rand(2, 3, size, size) * 2 - 1)
        for norm in norms:
            deviation = norm.running_var.sqrt()
            noise = torch.randn_like(norm.running_mean)
            norm.running_mean += 0.1 * deviation * noise
            norm.running_var *= 0.7 + 0.7 * torch.rand_like(noise)
            norm.weight.copy_(0.7 + 0.6 * torch.rand_like(noise))
            norm.bias.copy_(0.1 * torch.randn_like(noise))


def wake(model):
    """ConvNeXt's blocks start with a factor of 1e-6, ViT's head with zeros:
    they would not count."""
    for name, parameter in model.named_parameters():
        if "layer_scale" in name:
            nn.init.uniform_(parameter, 0.3, 0.7)
        if name == "heads.head.weight":
            nn.init.normal_(parameter, std=0.05)


def export(path, make, size, variant):
    torch.manual_seed(SEED)
    model = make()
    wake(model)
    settle(model, size)
    model.eval()
    options = {}
    if variant == "training":
        model.train()
        options = {"training": TrainingMode.TRAINING}
    if variant == "raw":
        options = {"training": TrainingMode.PRESERVE}
    if variant == "open":
        options = {"dynamic_axes": {"input": {0: "N"}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(1, 3, size, size), path + ".part",
                          opset_version=OPSET, input_names=["input"],
                          output_names=["output"], **options)
    os.replace(path + ".part", path)


def drawn(random, shape, reader):
    """A constant as the operator that reads it expects it."""
    if len(shape) > 1:
        bound = (6 / max(1, numpy.prod(shape[1:]))) ** 0.5
        return random.uniform(-bound, bound, shape)
    positive = reader == "BatchNormalization"
    return random.uniform(0.7, 1.4, shape) if positive else \
        random.uniform(-0.2, 0.2, shape)


def seed_light(path, target):
    """Drawn initializers instead of each ConstantOfShape."""
    graph = onnx.load(path)
    nodes = graph.graph.node
    shapes = {i.name: numpy_helper.to_array(i)
              for i in graph.graph.initializer}
    readers = {name: node.op_type for node in nodes for name in node.input}
    random = numpy.random.RandomState(SEED)
    for node in [n for n in nodes if n.op_type == "ConstantOfShape"]:
        name = node.output[0]
        values = drawn(random, shapes[node.input[0]], readers[name])
        graph.graph.initializer.append(
            numpy_helper.from_array(values.astype("float32"), name))
        nodes.remove(node)
    last = nodes[-1]
    if last.op_type == "Softmax":
        graph.graph.output[0].name = last.input[0]
        nodes.remove(last)
    onnx.save(graph, target)


def seed_lights(folder, wanted):
    for path in sorted(glob.glob(LIGHT)):
        title = os.path.basename(path)[:-5] + ".seeded"
        target = os.path.join(folder, title + ".onnx")
        if (not wanted or title in wanted) and not os.path.exists(target):
            seed_light(path, target)


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    seed_lights(folder, wanted)
    jobs = [(name, name, "training" if name in TRAINING else "")
            for name in sorted(NETWORKS)]
    jobs += [(f"{name}.raw", name, "raw") for name in RAW]
    jobs += [(f"{name}.open", name, "open") for name in OPEN]
    for title, name, variant in jobs:
        path = os.path.join(folder, title + ".onnx")
        if (wanted and title not in wanted) or os.path.exists(path):
            continue
        start = time.monotonic()
        export(path, *NETWORKS[name], variant)
        print(f"{title:32} {os.path.getsize(path) / 1e6:6.1f} MB "
              f"{time.monotonic() - start:5.1f} s", flush=True)


if __name__ == "__main__":
    main()

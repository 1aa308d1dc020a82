#!/usr/bin/env python3
"""truth_keras.py - Keras models against tfjs, and single layers against what
Keras 2 itself computed.

  models   small ones, made here with drawn weights; tfjs and amphora read them.
           tfjs' values are recorded in tests/truth/keras-*.values and compared
           in every run. --long computes them anew, and reads each model from
           .h5 of versions 2 and 3 and from .keras as well.
  golden   keras-js' inputs, weights and values in ../shared/data/keras, each a
           layer with the settings that stand in the table here
  whole    pretrained ResNet (MLPerf Tiny) and MobileNetV2 with drawn weights,
           with --long only

Compared are the reference evaluation and the simulated listing for
xdnn-v3-96, to 1e-4 of the largest value.
usage: truth_keras.py [--long | --record] [NAME...]
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from foreign import (NPM, TFJS, compare_foreign, install_npm,  # noqa: E402
                     tfjs)
from truthlib import (Refused, Table, asked, count, draw,  # noqa: E402
                      npy_write, run_jobs, scratch, verify)
from write_keras import Model, floats  # noqa: E402

DATA = "../shared/data/keras/"


def conv(m, x, channels, filters, size, bias=True, **config):
    fan = (3 / (size[0] * size[1] * channels)) ** 0.5
    weights = [("kernel", [*size, channels, filters], -fan, fan)]
    weights += [("bias", [filters], -.5, .5)] if bias else []
    return m.layer("Conv2D", x, weights=weights, filters=filters,
                   kernel_size=list(size), use_bias=bias,
                   data_format="channels_last",
                   **{"strides": [1, 1], "padding": "valid",
                      "dilation_rate": [1, 1], "activation": "linear",
                      **config})


def convolutions(m):
    x = m.input(9, 10, 4)
    for config in ({}, {"strides": [2, 2], "padding": "same"},
                   {"padding": "same", "activation": "relu"},
                   {"strides": [2, 1], "activation": "tanh"},
                   {"dilation_rate": [2, 2], "padding": "same"}):
        m.ends.append(conv(m, x, 4, 5, (3, 3), **config))
    m.ends.append(conv(m, x, 4, 3, (3, 2), False, padding="same",
                       strides=[3, 3]))
    m.ends.append(conv(m, x, 4, 6, (1, 1), strides=[2, 2], padding="same"))


def depthwise(m):
    x = m.input(9, 10, 4)
    for many, config in ((1, {"strides": [1, 1], "padding": "same"}),
                         (1, {"strides": [2, 2], "padding": "same"}),
                         (2, {"strides": [2, 2], "padding": "valid"})):
        m.end("DepthwiseConv2D", x, weights=[
            ("depthwise_kernel", [3, 3, 4, many], -.5, .5),
            ("bias", [4 * many], -.5, .5)], kernel_size=[3, 3],
            depth_multiplier=many, use_bias=True, activation="linear",
            data_format="channels_last", dilation_rate=[1, 1], **config)
    m.end("SeparableConv2D", x, weights=[
        ("depthwise_kernel", [3, 3, 4, 2], -.5, .5),
        ("pointwise_kernel", [1, 1, 8, 5], -.5, .5),
        ("bias", [5], -.5, .5)], filters=5, kernel_size=[3, 3],
        strides=[1, 1], padding="same", depth_multiplier=2, use_bias=True,
        activation="relu", data_format="channels_last", dilation_rate=[1, 1])


def transposed(m):
    x = m.input(5, 6, 4)
    for size, config in ((3, {"strides": [2, 2], "padding": "same"}),
                         (4, {"strides": [2, 2], "padding": "same"}),
                         (3, {"strides": [2, 2], "padding": "valid"}),
                         (2, {"strides": [2, 2], "padding": "valid"})):
        m.end("Conv2DTranspose", x, weights=[
            ("kernel", [size, size, 3, 4], -.3, .3), ("bias", [3], -.5, .5)],
            filters=3, kernel_size=[size, size], use_bias=True,
            activation="linear", data_format="channels_last", **config)


def norm(m, x, n, end=False, scale=True, center=True, axis=-1):
    weights = [("gamma", [n], .7, 1.3)] if scale else []
    weights += [("beta", [n], -.2, .2)] if center else []
    weights += [("moving_mean", [n], -.2, .2),
                ("moving_variance", [n], .5, 1.5)]
    return (m.end if end else m.layer)(
        "BatchNormalization", x, weights=weights, axis=axis, epsilon=1e-3,
        momentum=.99, scale=scale, center=center)


def norms(m):
    x = m.input(4, 5, 6)
    for scale in (True, False):
        for center in (True, False):
            norm(m, x, 6, True, scale, center)
    norm(m, conv(m, x, 6, 4, (3, 3), False), 4, True)
    flat = m.layer("Flatten", x)
    norm(m, flat, 120, True)


def pools(m):
    x = m.input(9, 10, 3)
    for kind in ("MaxPooling2D", "AveragePooling2D"):
        for size, step, padding in (([2, 2], [2, 2], "valid"),
                                    ([3, 3], [2, 2], "same"),
                                    ([3, 2], [1, 1], "same"),
                                    ([2, 3], [3, 2], "valid")):
            m.end(kind, x, pool_size=size, strides=step, padding=padding,
                  data_format="channels_last")
    m.end("GlobalAveragePooling2D", x, data_format="channels_last")
    m.end("GlobalMaxPooling2D", x, data_format="channels_last")


def recurrent(m):
    """Over sequences, forward and backward, the last state or all."""
    x = m.input(7, 5)
    for kind, gates in (("SimpleRNN", 1), ("GRU", 3), ("LSTM", 4)):
        for units, config in ((4, {}), (3, {"return_sequences": True}),
                              (2, {"go_backwards": True,
                                   "return_sequences": True}),
                              (3, {"go_backwards": True, "use_bias": False,
                                   "activation": "relu"})):
            if kind != "SimpleRNN":
                config["recurrent_activation"] = "sigmoid"
            if kind == "GRU":
                config["reset_after"] = False
            weights = [("kernel", [5, gates * units], -.6, .6),
                       ("recurrent_kernel", [units, gates * units], -.6, .6)]
            if config.get("use_bias", True):
                weights.append(("bias", [gates * units], -.5, .5))
            m.end(kind, x, weights=weights, units=units, **config)


def sequences(m):
    x = m.input(12, 5)
    for config in ({"padding": "same", "strides": [2]},
                   {"padding": "same", "dilation_rate": [2]},
                   {"padding": "valid", "activation": "relu"}):
        y = m.end("Conv1D", x, weights=[("kernel", [3, 5, 6], -.4, .4),
                                        ("bias", [6], -.5, .5)],
                  filters=6, kernel_size=[3], use_bias=True, **config)
    for kind in ("MaxPooling1D", "AveragePooling1D"):
        m.end(kind, y, pool_size=[3], strides=[2], padding="same")
        m.end(kind, y, pool_size=[2], strides=[2], padding="valid")
    m.end("GlobalMaxPooling1D", y)
    flat = m.end("GlobalAveragePooling1D", y)
    m.end("RepeatVector", flat, n=3)
    words = m.layer("ReLU", m.layer("Dense", flat, weights=[
        ("kernel", [6, 4], 0, 5), ("bias", [4], 0, 5)], units=4))
    m.end("Embedding", words, weights=[("embeddings", [40, 3], -1, 1)],
          input_dim=40, output_dim=3)


def activations(m):
    x = m.input(4, 5, 3)
    big = conv(m, x, 3, 3, (1, 1), activation="linear")
    big = m.layer("Add", big, big, big, big)
    for word in ("relu", "relu6", "sigmoid", "tanh", "elu", "selu",
                 "softplus", "softsign", "swish", "linear", "softmax"):
        m.end("Activation", big, activation=word)
    m.end("ReLU", big, max_value=6.0)
    m.end("ReLU", big)
    m.end("ReLU", big, max_value=2.5)
    m.end("LeakyReLU", big, alpha=0.2)
    m.end("ELU", big, alpha=1.0)
    m.end("Softmax", big, axis=-1)
    m.end("PReLU", big, weights=[("alpha", [1, 1, 3], .1, .4)],
          shared_axes=[1, 2])


def hard_sigmoid(m):
    x = m.input(4, 5, 3)
    m.end("Activation", m.layer("Add", x, x, x), activation="hard_sigmoid")


def merges(m):
    x = m.input(4, 5, 3)
    y, z = conv(m, x, 3, 3, (1, 1)), conv(m, x, 3, 3, (3, 3), padding="same")
    for kind in ("Add", "Multiply", "Average", "Maximum", "Minimum"):
        m.end(kind, x, y, z)
    for axis in (-1, 3, 1, 2):
        m.end("Concatenate", x, y, z, axis=axis)


def shapes(m):
    x = m.input(4, 6, 8)
    m.end("ZeroPadding2D", x, padding=[[1, 2], [0, 3]],
          data_format="channels_last")
    m.end("Cropping2D", x, cropping=[[1, 0], [2, 1]],
          data_format="channels_last")
    m.end("UpSampling2D", x, size=[2, 3], data_format="channels_last",
          interpolation="nearest")
    m.end("Flatten", x)
    m.end("Reshape", x, target_shape=[6, 4, 8])
    m.end("Reshape", x, target_shape=[-1, 8])
    m.end("Permute", x, dims=[2, 1, 3])
    m.end("Permute", x, dims=[3, 1, 2])
    m.end("Dropout", x, rate=0.5)


def dense(m):
    x = m.input(4, 5, 3)
    flat = m.layer("Flatten", m.layer("ReLU", x))
    y = m.layer("Dense", flat, weights=[("kernel", [60, 8], -.3, .3),
                                        ("bias", [8], -.5, .5)],
                units=8, use_bias=True, activation="relu")
    m.end("Dense", y, weights=[("kernel", [8, 5], -.5, .5)], units=5,
          use_bias=False, activation="softmax")
    m.end("Dense", x, weights=[("kernel", [3, 4], -.5, .5),
                               ("bias", [4], -.5, .5)],
          units=4, use_bias=True, activation="linear")


def two_inputs(m):
    x, y = m.input(4, 5, 3, name="left"), m.input(4, 5, 2, name="right")
    both = m.layer("Concatenate", x, y, axis=-1)
    m.ends.append(conv(m, both, 5, 4, (3, 3), padding="same"))


# ---- single layers, by keras-js ----

def conv_config(**config):
    return {"strides": [1, 1], "padding": "valid", "activation": "relu",
            "dilation_rate": [1, 1], "data_format": "channels_last", **config}


def pool_config(size, step, padding="valid", layout="last"):
    return {"pool_size": size, "strides": step, "padding": padding,
            "data_format": "channels_" + layout}


def norm_config(epsilon=1e-5, axis=-1, scale=True, center=True):
    return {"epsilon": epsilon, "axis": axis, "scale": scale,
            "center": center}


# The settings of each test of a file, in order.
GOLDEN = {
    "Conv2D": [
        conv_config(activation="linear"), conv_config(activation="linear"),
        conv_config(strides=[2, 2]), conv_config(strides=[2, 1]),
        conv_config(padding="same"),
        conv_config(padding="same", strides=[2, 2]),
        conv_config(padding="same", strides=[3, 2]),
        conv_config(dilation_rate=[2, 2], activation="linear"),
        conv_config(dilation_rate=[2, 2], activation="linear"),
        conv_config(dilation_rate=[3, 3]),
        conv_config(padding="same", dilation_rate=[2, 2]),
        conv_config(padding="same", dilation_rate=[4, 4])],
    "MaxPooling2D": [
        pool_config([2, 2], [2, 2]), pool_config([2, 2], [1, 1]),
        pool_config([2, 2], [2, 1]), pool_config([3, 3], [3, 3]),
        pool_config([3, 3], [3, 3]), pool_config([2, 2], [2, 2], "same"),
        pool_config([2, 2], [1, 1], "same"),
        pool_config([2, 2], [2, 1], "same"),
        pool_config([3, 3], [3, 3], "same"),
        pool_config([3, 3], [3, 3], "same"),
        pool_config([3, 3], [2, 2], "valid", "first"),
        pool_config([3, 3], [1, 1], "same", "first"),
        pool_config([2, 2], [2, 2], "valid", "first")],
    "BatchNormalization": [
        norm_config(), norm_config(1e-2), norm_config(axis=1),
        norm_config(axis=2), norm_config(scale=False),
        norm_config(center=False),
        norm_config(1e-3, scale=False, center=False)],
}


def weight_names(kind, config):
    if kind == "BatchNormalization":
        return (["gamma"] * config["scale"] + ["beta"] * config["center"] +
                ["moving_mean", "moving_variance"])
    return ["kernel", "bias"]


def one_layer(kind, config, test):
    m = Model("golden")
    x = m.input(*test["input"]["shape"])
    weights = [(name, w["shape"], floats(*w["data"])) for name, w in
               zip(weight_names(kind, config), test.get("weights", []))]
    if kind == "Conv2D":
        *size, _, filters = weights[0][1]
        config = {**config, "kernel_size": size, "filters": filters,
                  "use_bias": len(weights) > 1}
    m.end(kind, x, weights=weights, **config)
    return m


def to_graph(shape, values, first):
    """Of N x C x H x W, which amphora's images are; `first`: so they are in
    the file."""
    if len(shape) != 3 or first:
        return [1, *shape], floats(*values)
    h, w, c = shape
    return [1, c, h, w], floats(*(values[i * c + k] for k in range(c)
                                  for i in range(h * w)))


def golden(table, kind, config, i, test):
    first = config.get("data_format") == "channels_first"
    with scratch() as folder:
        one_layer(kind, config, test).write_tfjs(folder + "/net.json")
        for name in ("input", "expected"):
            npy_write(f"{folder}/{name}.npy", *to_graph(
                test[name]["shape"], test[name]["data"], first))
        report = verify(folder + "/net.json", [folder + "/input.npy"],
                        [folder + "/expected.npy"])
        table.add(f"golden {kind} {i}", 1, len(test["expected"]["data"]),
                  report)


def all_golden(table):
    for kind, configs in GOLDEN.items():
        path = f"{DATA}kerasjs_{kind}.json"
        if not os.path.exists(path):
            table.skip("golden " + kind, "no ../shared/data")
            continue
        with open(path) as file:
            tests = json.load(file)
        for i, (config, test) in enumerate(zip(configs, tests.values())):
            try:
                golden(table, kind, config, i, test)
            except Refused as error:
                table.fail(f"golden {kind} {i}", error)
        if len(tests) != len(configs):
            table.fail("golden " + kind, "has another number of tests")


# ---- whole models ----

def without_training(config):
    """tfjs does not know all regularizers."""
    if isinstance(config, list):
        return [without_training(item) for item in config]
    if isinstance(config, dict):
        return {key: None if key.endswith(("_regularizer", "_constraint"))
                else without_training(value) for key, value in config.items()}
    return config


def write_pretrained(path):
    """MLPerf Tiny's ResNet with drawn weights, in the shapes that tfjs asks
    for."""
    with open(DATA + "mlcommons_pretrainedResnet_keras2.4.json") as file:
        model = without_training(json.load(file))
    topology = {"keras_version": "2.4.0", "backend": "tensorflow",
                "model_config": model}
    with open(path, "w") as file:
        json.dump({"format": "layers-model", "modelTopology": topology}, file)
    asked = subprocess.run(["node", "tests/truth_tfjs.mjs", NPM, path],
                           stdout=subprocess.PIPE, check=True).stdout
    weights, data = json.loads(asked), b""
    for weight in weights:
        fan = count(weight["shape"][:-1])
        most = (6 / fan) ** 0.5 if fan > 1 else 0.2
        low = 0.7 if weight["name"].endswith(("gamma", "variance")) else -most
        data += draw(weight["name"], count(weight["shape"]), low,
                     1.3 if low > 0 else most)
    with open(path[:-4] + "bin", "wb") as file:
        file.write(data)
    with open(path, "w") as file:
        json.dump({"format": "layers-model", "modelTopology": topology,
                   "weightsManifest": [{"paths": ["model.bin"],
                                        "weights": weights}]}, file)


def whole(table):
    if os.path.exists(DATA):
        compare_foreign(table, "pretrained ResNet",
                        [("model.json", write_pretrained)], [("tfjs", tfjs())])


MODELS = {f.__name__.replace("_", "-"): f for f in (
    convolutions, depthwise, transposed, norms, pools, activations, hard_sigmoid,
    merges,
    shapes, dense, two_inputs, recurrent, sequences)}


# Version 3 has hard sigmoids of another slope.
OF_2_ONLY = ("hard-sigmoid",)


def check(table, name, record, long):
    m = Model(name)
    MODELS[name](m)
    files = [("model.json", m.write_tfjs)]
    if long:
        files += [("2.h5", m.write_h5)]
    if long and name not in OF_2_ONLY:
        files += [("3.h5", m.write_h5_of_3), ("net.keras", m.write_keras)]
    compare_foreign(table, "keras-" + name, files, [("tfjs", tfjs())],
                    f"tests/truth/keras-{name}.values", record=record,
                    long=long)


def main():
    record, long, wanted = asked()
    if long:
        install_npm(TFJS)
    table = Table("tfjs" if long else "tfjs' recorded values")
    run_jobs(table, [(name, check, (name, record, long)) for name in MODELS],
             wanted)
    if not wanted or "golden" in wanted:
        all_golden(table)
    if long and (not wanted or "whole" in wanted):
        whole(table)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())

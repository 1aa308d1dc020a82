"""write_same.py - one network as the files of several formats.

Each class writes one format: the layers are told one by one, a convolution with
its normalisation and activation as one of them, kernels as out x in x height x
width. Sizes are odd wherever there is a stride, so that SAME pads as much as
height // 2 does, and padding is the same network in all formats. The weights
are the same numbers; TensorFlow Lite, which has no normalisation, gets them
folded into the kernel.
"""
import array
import struct

import write_keras
import write_mxnet
import write_tf
import write_tflite
from truthlib import count, draw, field

EPS = 1e-3


class Weights:
    """By layer: the kernel, and what the normalisation has."""

    def __init__(self, name, out, fan_in, kernel):
        most = (6 / (fan_in * kernel * kernel)) ** 0.5
        self.shape = [out, fan_in, kernel, kernel]
        self.kernel = self.drawn(name + "/kernel", self.shape, -most, most)
        self.gamma = self.drawn(name + "/gamma", [out], .7, 1.3)
        self.beta = self.drawn(name + "/beta", [out], -.2, .2)
        self.mean = self.drawn(name + "/mean", [out], -.2, .2)
        self.var = self.drawn(name + "/var", [out], .7, 1.4)

    @staticmethod
    def drawn(name, shape, low, high):
        return array.array("f", draw(name, count(shape), low, high))

    def norm(self):
        return [("gamma", self.gamma), ("beta", self.beta),
                ("mean", self.mean), ("var", self.var)]

    def turned(self, order):
        """The kernel's bytes as "hwio" or "ohwi" or "hwoi"."""
        out, fan, h, w = self.shape
        pixels, k = h * w, self.kernel
        if order == "hwio":
            parts = (k[i * pixels + p::fan * pixels]
                     for p in range(pixels) for i in range(fan))
        else:
            parts = (k[o * fan * pixels + p:(o + 1) * fan * pixels:pixels]
                     for o in range(out) for p in range(pixels))
        return b"".join(part.tobytes() for part in parts)

    def folded(self):
        """Kernel and bias with the normalisation in them."""
        fold, n = Weights.__new__(Weights), count(self.shape[1:])
        factor = [g / (v + EPS) ** 0.5 for g, v in zip(self.gamma, self.var)]
        fold.shape = self.shape
        fold.kernel = array.array("f", (
            value * factor[o] for o in range(self.shape[0])
            for value in self.kernel[o * n:(o + 1) * n]))
        fold.beta = array.array("f", (
            b - m * f for b, m, f in zip(self.beta, self.mean, factor)))
        return fold


# ---- ONNX ----

class Onnx:
    suffix = "onnx"

    def __init__(self):
        self.body, self.made = b"", 0

    def tensor(self, name, shape, data):
        dims = b"".join(field(1, d) for d in shape)
        self.body += field(5, dims + field(2, 1) + field(8, name) +
                           field(9, data))
        return name

    @staticmethod
    def value(name, shape):
        dims = b"".join(field(1, field(1, d)) for d in shape)
        return field(1, name) + field(2, field(1, field(1, 1) +
                                               field(2, dims)))

    def node(self, op, inputs, name, **attributes):
        node = b"".join(field(1, i) for i in inputs)
        node += field(2, name) + field(3, name) + field(4, op)
        for key, v in attributes.items():
            if isinstance(v, float):
                inner = b"\x15" + struct.pack("<f", v) + field(20, 1)
            elif isinstance(v, int):
                inner = field(3, v) + field(20, 2)
            else:
                inner = b"".join(field(8, i) for i in v) + field(20, 7)
            node += field(5, field(1, key) + inner)
        self.body += field(1, node)
        self.end = name
        return name

    def input(self, channels, size):
        self.body += field(11, self.value("x", [1, channels, size, size]))
        return "x"

    def conv(self, x, name, w, stride, groups, act):
        size = w.shape[2]
        kernel = self.tensor(name + "/kernel", w.shape, w.kernel.tobytes())
        x = self.node("Conv", [x, kernel], name, group=groups,
                      kernel_shape=[size] * 2, strides=[stride] * 2,
                      pads=[size // 2] * 4)
        norm = [self.tensor(f"{name}/{key}", [w.shape[0]], v.tobytes())
                for key, v in w.norm()]
        x = self.node("BatchNormalization", [x, *norm], name + "/bn",
                      epsilon=EPS)
        return self.act(x, name, act)

    def act(self, x, name, act):
        if act == "relu6":
            low, high = (self.tensor(f"{name}/{v}", [], struct.pack("<f", v))
                         for v in (0, 6))
            return self.node("Clip", [x, low, high], name + "/act")
        return self.node("Relu", [x], name + "/act") if act else x

    def add(self, x, y, name, act):
        return self.act(self.node("Add", [x, y], name), name, act)

    def pool(self, x, name, size, stride):
        return self.node("MaxPool", [x], name, kernel_shape=[size] * 2,
                         strides=[stride] * 2, pads=[size // 2] * 4)

    def classes(self, x, w):
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x], "mean")],
                      "flat", axis=1)
        kernel = self.tensor("fc/kernel", w.shape[:2], w.kernel.tobytes())
        bias = self.tensor("fc/bias", w.shape[:1], w.beta.tobytes())
        return self.node("Gemm", [x, kernel, bias], "fc", transB=1)

    def write(self, path):
        end = field(12, field(1, self.end) + field(2, field(1, field(1, 1))))
        with open(path, "wb") as file:
            file.write(field(1, 7) + field(7, self.body + field(2, "net") +
                                           end) + field(8, field(2, 13)))
        return [path]


# ---- Caffe ----

class Caffe:
    suffix = "prototxt"

    def __init__(self):
        self.text, self.model = "", b""

    def layer(self, kind, name, bottoms, more="", blobs=()):
        reads = " ".join(f'bottom: "{b}"' for b in bottoms)
        self.text += (f'layer {{ name: "{name}" type: "{kind}" {reads} '
                      f'top: "{name}" {more} }}\n')
        packed = b"".join(field(7, field(7, b"".join(
            field(1, d) for d in shape)) + field(5, data))
            for shape, data in blobs)
        self.model += field(100, field(1, name) + field(2, kind) + packed)
        return name

    def input(self, channels, size):
        return self.layer("Input", "x", [], "input_param { shape { dim: 1 "
                          f"dim: {channels} dim: {size} dim: {size} }} }}")

    def conv(self, x, name, w, stride, groups, act):
        n, size = w.shape[0], w.shape[2]
        x = self.layer(
            "Convolution", name, [x], f"convolution_param {{ num_output: {n} "
            f"kernel_size: {size} stride: {stride} pad: {size // 2} "
            f"group: {groups} bias_term: false }}",
            [(w.shape, w.kernel.tobytes())])
        one = array.array("f", [1]).tobytes()
        x = self.layer("BatchNorm", name + "/bn", [x],
                       f"batch_norm_param {{ eps: {EPS} }}",
                       [([n], w.mean.tobytes()), ([n], w.var.tobytes()),
                        ([1], one)])
        x = self.layer("Scale", name + "/scale", [x],
                       "scale_param { bias_term: true }",
                       [([n], w.gamma.tobytes()), ([n], w.beta.tobytes())])
        return self.act(x, name, act)

    def act(self, x, name, act):
        kind = {"relu": "ReLU", "relu6": "ReLU6"}.get(act)
        return self.layer(kind, name + "/act", [x]) if kind else x

    def add(self, x, y, name, act):
        x = self.layer("Eltwise", name, [x, y],
                       "eltwise_param { operation: SUM }")
        return self.act(x, name, act)

    def pool(self, x, name, size, stride):
        return self.layer("Pooling", name, [x], "pooling_param { pool: MAX "
                          f"kernel_size: {size} stride: {stride} "
                          f"pad: {size // 2} }}")

    def classes(self, x, w):
        x = self.layer("Pooling", "mean", [x],
                       "pooling_param { pool: AVE global_pooling: true }")
        return self.layer(
            "InnerProduct", "fc", [x],
            f"inner_product_param {{ num_output: {w.shape[0]} }}",
            [(w.shape[:2], w.kernel.tobytes()),
             (w.shape[:1], w.beta.tobytes())])

    def write(self, path):
        with open(path, "w") as file:
            file.write('name: "net"\n' + self.text)
        with open(path + ".caffemodel", "wb") as file:
            file.write(self.model)
        return [path, "--weights", path + ".caffemodel"]


# ---- TensorFlow ----

class TensorFlow:
    suffix = "pb"

    def __init__(self):
        self.g = write_tf.Graph()

    def const(self, shape, data):
        return self.g.const(write_tf.FLOAT, shape, data)

    def input(self, channels, size):
        return self.g.input(1, size, size, channels)

    def conv(self, x, name, w, stride, groups, act):
        out, fan, size, _ = w.shape
        common = {"name": name, "strides": write_tf.Ints(
            [1, stride, stride, 1]), "padding": "SAME", "data_format": "NHWC"}
        if groups > 1:
            kernel = self.const([size, size, out, 1], w.turned("hwio"))
            x = self.g.node("DepthwiseConv2dNative", x, kernel, **common)
        else:
            kernel = self.const([size, size, fan, out], w.turned("hwio"))
            x = self.g.node("Conv2D", x, kernel, **common)
        norm = [self.const([out], v.tobytes()) for _, v in w.norm()]
        x = self.g.node("FusedBatchNormV3", x, *norm, name=name + "/bn",
                        epsilon=EPS, is_training=False, data_format="NHWC")
        return self.act(x, name, act)

    def act(self, x, name, act):
        kind = {"relu": "Relu", "relu6": "Relu6"}.get(act)
        return self.g.node(kind, x, name=name + "/act") if kind else x

    def add(self, x, y, name, act):
        return self.act(self.g.node("AddV2", x, y, name=name), name, act)

    def pool(self, x, name, size, stride):
        return self.g.node(
            "MaxPool", x, name=name, padding="SAME", data_format="NHWC",
            ksize=write_tf.Ints([1, size, size, 1]),
            strides=write_tf.Ints([1, stride, stride, 1]))

    def classes(self, x, w):
        x = self.g.node("Mean", x, self.g.ints(1, 2), name="mean",
                        keep_dims=False)
        kernel = self.const(w.shape[1::-1], w.turned("hwio"))
        x = self.g.node("MatMul", x, kernel, name="fc", transpose_a=False,
                        transpose_b=False)
        return self.g.node("BiasAdd", x, self.const(w.shape[:1],
                                                    w.beta.tobytes()))

    def write(self, path):
        self.g.write_pb(path)
        return [path]


# ---- Keras ----

class Keras:
    suffix = "json"

    def __init__(self):
        self.m = write_keras.Model()

    def input(self, channels, size):
        return self.m.input(size, size, channels)

    def conv(self, x, name, w, stride, groups, act):
        out, fan, size, _ = w.shape
        common = {"name": name, "kernel_size": [size, size],
                  "strides": [stride, stride], "padding": "same",
                  "use_bias": False, "data_format": "channels_last",
                  "activation": "linear", "dilation_rate": [1, 1]}
        if groups > 1:
            x = self.m.layer("DepthwiseConv2D", x, weights=[
                ("depthwise_kernel", [size, size, out, 1],
                 w.turned("hwio"))], depth_multiplier=1, **common)
        else:
            x = self.m.layer("Conv2D", x, weights=[
                ("kernel", [size, size, fan, out], w.turned("hwio"))],
                filters=out, **common)
        names = ("gamma", "beta", "moving_mean", "moving_variance")
        x = self.m.layer("BatchNormalization", x, name=name + "_bn", weights=[
            (key, [out], v.tobytes()) for key, (_, v) in
            zip(names, w.norm())], axis=[3], epsilon=EPS, scale=True,
            center=True)
        return self.act(x, name, act)

    def act(self, x, name, act):
        if act == "relu6":
            return self.m.layer("ReLU", x, name=name + "_act", max_value=6.0)
        return self.m.layer("Activation", x, name=name + "_act",
                            activation=act) if act else x

    def add(self, x, y, name, act):
        return self.act(self.m.layer("Add", x, y, name=name), name, act)

    def pool(self, x, name, size, stride):
        return self.m.layer("MaxPooling2D", x, name=name, padding="same",
                            pool_size=[size] * 2, strides=[stride] * 2,
                            data_format="channels_last")

    def classes(self, x, w):
        x = self.m.layer("GlobalAveragePooling2D", x,
                         data_format="channels_last")
        return self.m.end("Dense", x, name="fc", units=w.shape[0], weights=[
            ("kernel", w.shape[1::-1], w.turned("hwio")),
            ("bias", w.shape[:1], w.beta.tobytes())], use_bias=True,
            activation="linear")

    def write(self, path):
        self.m.write_tfjs(path)
        return [path]


# ---- TensorFlow Lite ----

class TfLite:
    suffix = "tflite"

    def __init__(self):
        self.m = write_tflite.Model()

    def input(self, channels, size):
        return self.m.input(1, size, size, channels)

    def made(self, x, stride, channels):
        side = -(-self.m.shapes[x][1] // stride)
        return [1, side, side, channels]

    def conv(self, x, name, w, stride, groups, act):
        out, fan, size, _ = w.shape
        fold = w.folded()
        act = {"relu": write_tflite.RELU, "relu6": write_tflite.RELU6}.get(
            act, write_tflite.NONE)
        depthwise = groups > 1
        kernel = self.m.const(
            [1, size, size, out] if depthwise else [out, size, size, fan],
            fold.turned("hwio" if depthwise else "ohwi"))
        bias = self.m.const([out], fold.beta.tobytes())
        return self.m.op(
            "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D",
            [x, kernel, bias], self.made(x, stride, out), write_tflite.SAME,
            stride, stride, *([1] if depthwise else []), act, 1, 1)

    def add(self, x, y, name, act):
        return self.m.op("ADD", [x, y], self.m.shapes[x],
                         write_tflite.RELU if act else write_tflite.NONE)

    def pool(self, x, name, size, stride):
        return self.m.op("MAX_POOL_2D", [x],
                         self.made(x, stride, self.m.shapes[x][3]),
                         write_tflite.SAME, stride, stride, size, size,
                         write_tflite.NONE)

    def classes(self, x, w):
        x = self.m.op("MEAN", [x, self.m.ints(1, 2)],
                      [1, self.m.shapes[x][3]], 0)
        kernel = self.m.const(w.shape[:2], w.kernel.tobytes())
        bias = self.m.const(w.shape[:1], w.beta.tobytes())
        return self.m.end("FULLY_CONNECTED", [x, kernel, bias],
                          [1, w.shape[0]], write_tflite.NONE, 0, 0)

    def write(self, path):
        self.m.write(path)
        return [path]


# ---- MXNet ----

class Mxnet:
    suffix = "mxnet.json"

    def __init__(self):
        self.s, self.arrays = write_mxnet.Symbol(), []

    def array(self, name, shape, data, kind="arg"):
        self.arrays.append((f"{kind}:{name}", shape, data.tobytes()))

    def input(self, channels, size):
        return self.s.input(1, channels, size, size, name="x")

    def conv(self, x, name, w, stride, groups, act):
        out, _, size, _ = w.shape
        x = self.s.node("Convolution", x, name=name, num_filter=out,
                        kernel=(size, size), stride=(stride, stride),
                        pad=(size // 2, size // 2), num_group=groups,
                        no_bias=True)
        self.array(name + "_weight", w.shape, w.kernel)
        x = self.s.node("BatchNorm", x, name=name + "_bn", fix_gamma=False,
                        eps=EPS)
        for key, kind, (_, v) in zip(
                ("gamma", "beta", "moving_mean", "moving_var"),
                ("arg", "arg", "aux", "aux"), w.norm()):
            self.array(f"{name}_bn_{key}", [out], v, kind)
        return self.act(x, name, act)

    def act(self, x, name, act):
        if act == "relu6":
            return self.s.node("clip", x, name=name + "_act", a_min=0,
                               a_max=6)
        return self.s.node("Activation", x, name=name + "_act",
                           act_type=act) if act else x

    def add(self, x, y, name, act):
        return self.act(self.s.node("elemwise_add", x, y, name=name), name,
                        act)

    def pool(self, x, name, size, stride):
        return self.s.node("Pooling", x, name=name, pool_type="max",
                           kernel=(size, size), stride=(stride, stride),
                           pad=(size // 2, size // 2))

    def classes(self, x, w):
        x = self.s.node("Pooling", x, name="mean", pool_type="avg",
                        global_pool=True, kernel=(7, 7))
        self.array("fc_weight", w.shape[:2], w.kernel)
        self.array("fc_bias", w.shape[:1], w.beta)
        return self.s.end("FullyConnected", self.s.node("Flatten", x),
                          name="fc", num_hidden=w.shape[0], no_bias=False)

    def write(self, path):
        self.s.write_json(path)
        write_mxnet.write_params(path + ".params", self.arrays)
        return [path, "--weights", path + ".params"]


FORMATS = {"ONNX": Onnx, "Caffe": Caffe, "TensorFlow": TensorFlow,
           "Keras": Keras, "TFLite": TfLite, "MXNet": Mxnet}

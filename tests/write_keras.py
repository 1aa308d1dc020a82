"""write_keras.py - Keras models from Python, for the tests.

A Model is a list of layers, each with its configuration, its weights by name,
and the layers it reads. It is written as tfjs reads it (JSON of Keras 2, all
weights in a file beside it), and with h5py as Keras itself saves: .h5 of
version 2, .h5 of version 3, .keras. Without h5py only the first.
"""
import json
import os
import re
import struct
import zipfile

from truthlib import count, draw


class Layer:
    def __init__(self, kind, name, reads, config, weights):
        self.kind, self.name, self.reads = kind, name, reads
        self.config = {"name": name, "trainable": True, "dtype": "float32",
                       **config}
        self.weights = weights  # (name, shape, bytes)


class Model:
    def __init__(self, name="net"):
        self.name = name
        self.layers = []
        self.ends = []

    def input(self, *shape, name="x"):
        """Without the batch."""
        self.layers.append(Layer("InputLayer", name, [], {
            "batch_input_shape": [None, *shape], "sparse": False,
            "ragged": False}, []))
        return name

    def layer(self, kind, *reads, weights=(), name=None, **config):
        """weights: (name, shape, low, high), drawn; or with bytes."""
        name = name or f"{kind.lower()}_{len(self.layers)}"
        values = []
        for key, shape, *bounds in weights:
            data = bounds[0] if isinstance(bounds[0], bytes) else \
                draw(f"{self.name}/{name}/{key}", count(shape), *bounds)
            values.append((key, list(shape), data))
        self.layers.append(Layer(kind, name, list(reads), config, values))
        return name

    def end(self, *arguments, **config):
        self.ends.append(self.layer(*arguments, **config))
        return self.ends[-1]

    # ---- JSON ----

    def of_version_2(self):
        ends = [[name, 0, 0] for name in self.ends]
        inputs = [[layer.name, 0, 0] for layer in self.layers
                  if layer.kind == "InputLayer"]
        layers = [{"class_name": layer.kind, "name": layer.name,
                   "config": layer.config, "inbound_nodes":
                   [[[read, 0, 0, {}] for read in layer.reads]]
                   if layer.reads else []} for layer in self.layers]
        return {"class_name": "Functional", "config":
                {"name": self.name, "layers": layers, "input_layers": inputs,
                 "output_layers": ends}}

    def of_version_3(self):
        def tensor(name):
            return {"class_name": "__keras_tensor__", "config":
                    {"shape": [None], "dtype": "float32",
                     "keras_history": [name, 0, 0]}}

        def call(reads):
            tensors = [tensor(read) for read in reads]
            return [{"args": tensors if len(tensors) == 1 else [tensors],
                     "kwargs": {}}]

        layers = []
        for layer in self.layers:
            config = dict(layer.config)
            if "batch_input_shape" in config:
                config["batch_shape"] = config.pop("batch_input_shape")
            layers.append({"module": "keras.layers", "name": layer.name,
                           "class_name": layer.kind, "config": config,
                           "registered_name": None, "inbound_nodes":
                           call(layer.reads) if layer.reads else []})
        version_2 = self.of_version_2()["config"]
        return {"module": "keras.src.models.functional", "registered_name":
                "Functional", "class_name": "Functional",
                "config": {**version_2, "trainable": True, "layers": layers}}

    # ---- files ----

    def write_tfjs(self, path):
        """NAME.json, and NAME.bin beside it."""
        values = path[:-len("json")] + "bin"
        weights = [(f"{layer.name}/{name}", shape, data)
                   for layer in self.layers
                   for name, shape, data in layer.weights]
        with open(path, "w") as file:
            json.dump({"format": "layers-model", "modelTopology":
                       {"keras_version": "2.4.0", "backend": "tensorflow",
                        "model_config": self.of_version_2()},
                       "weightsManifest": [
                           {"paths": [os.path.basename(values)], "weights":
                            [{"name": name, "shape": shape,
                              "dtype": "float32"}
                             for name, shape, _ in weights]}]}, file)
        with open(values, "wb") as file:
            file.write(b"".join(data for _, _, data in weights))

    def write_json(self, path):
        with open(path, "w") as file:
            json.dump(self.of_version_2(), file)

    def write_h5(self, path, colon=":0", version=2):
        """model_weights/LAYER/LAYER/NAME:0, and without :0 by version 3."""
        import h5py
        import numpy
        model = self.of_version_2() if version == 2 else self.of_version_3()
        with h5py.File(path, "w") as file:
            file.attrs["model_config"] = json.dumps(model)
            file.attrs["keras_version"] = "2.4.0" if version == 2 else "3.10.0"
            top = file.create_group("model_weights")
            top.attrs["layer_names"] = [l.name.encode() for l in self.layers]
            for layer in self.layers:
                group = top.create_group(layer.name)
                names = [f"{layer.name}/{name}{colon}"
                         for name, _, _ in layer.weights]
                group.attrs["weight_names"] = [n.encode() for n in names]
                for name, (_, shape, data) in zip(names, layer.weights):
                    group[name] = numpy.frombuffer(data, "<f4").reshape(shape)

    def write_h5_of_3(self, path):
        self.write_h5(path, "", 3)

    def write_keras(self, path):
        """layers/CLASS_N/vars/I, in a zip that only stores."""
        import h5py
        import numpy
        weights, counts = path + ".weights", {}
        with h5py.File(weights, "w") as file:
            for layer in self.layers:
                kind = snake(layer.kind)
                n = counts[kind] = counts.get(kind, -1) + 1
                slot = f"layers/{kind}_{n}" if n else f"layers/{kind}"
                group = file.create_group(slot + "/vars")
                for i, (_, shape, data) in enumerate(layer.weights):
                    group[str(i)] = numpy.frombuffer(data,
                                                     "<f4").reshape(shape)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("metadata.json",
                             json.dumps({"keras_version": "3.10.0"}))
            archive.writestr("config.json", json.dumps(self.of_version_3()))
            archive.write(weights, "model.weights.h5")
        os.remove(weights)


def snake(name):
    """Keras 3's own rule."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)

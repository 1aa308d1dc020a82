#!/usr/bin/env python3
"""truth_armnn.py - one TensorFlow Lite model through Arm NN's reference.
usage: truth_armnn.py MODEL.tflite OUT [NAME DIMS FILE]...
For each input, in the model's order, its dims and raw values of the type that
it has in the file. Writes OUT.0, OUT.1... in the same raw form and prints one
line of JSON with the outputs' dims and types."""
import json
import os
import sys
import warnings

import numpy
import pyarmnn as ann

BACKENDS = "/usr/lib/x86_64-linux-gnu/armnn22"
KINDS = {ann.DataType_Float32: "float32", ann.DataType_QAsymmS8: "int8",
         ann.DataType_QAsymmU8: "uint8", ann.DataType_Signed32: "int32"}


def main():
    path, out, *inputs = sys.argv[1:]
    warnings.simplefilter("ignore")
    options = ann.CreationOptions()
    options.m_DynamicBackendsPath = BACKENDS
    runtime = ann.IRuntime(options)
    parser = ann.ITfLiteParser()
    network = parser.CreateNetworkFromBinaryFile(path)
    optimised, _ = ann.Optimize(
        network, [ann.BackendId("CpuRef")], runtime.GetDeviceSpec(),
        ann.OptimizerOptions())
    net, _ = runtime.LoadNetwork(optimised)
    ins = [parser.GetNetworkInputBindingInfo(0, name)
           for name in parser.GetSubgraphInputTensorNames(0)]
    outs = [parser.GetNetworkOutputBindingInfo(0, name)
            for name in parser.GetSubgraphOutputTensorNames(0)]
    values = [numpy.fromfile(inputs[3 * i + 2],
                             KINDS[info[1].GetDataType()])
              for i, info in enumerate(ins)]
    made = ann.make_output_tensors(outs)
    runtime.EnqueueWorkload(net, ann.make_input_tensors(ins, values), made)
    results = ann.workload_tensors_to_ndarray(made)
    for i, value in enumerate(results):
        numpy.ascontiguousarray(value).tofile(f"{out}.{i}")
    print(json.dumps({"dims": [list(v.shape) for v in results],
                      "types": [str(v.dtype) for v in results]}), flush=True)
    os._exit(0)  # unloading backends does not always end


if __name__ == "__main__":
    main()

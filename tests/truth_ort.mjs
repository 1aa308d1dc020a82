// truth_ort.mjs - one ONNX model through onnxruntime-node.
// usage: node truth_ort.mjs FOLDER MODEL OUT [DIMS FILE]...
// FOLDER: where onnxruntime-node is installed; for each input, in the model's
// order, its dims (1x3x224x224) and raw little-endian float32 values. Writes
// OUT.0, OUT.1... in the same raw form and prints one line of JSON.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const [folder, model, out, ...inputs] = process.argv.slice(2);
const ort = createRequire(resolve(folder) + "/")("onnxruntime-node");

const session = await ort.InferenceSession.create(model, {
  graphOptimizationLevel: "all",
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  logSeverityLevel: 3,
});
const feeds = {};
session.inputNames.slice(0, inputs.length / 2).forEach((name, i) => {
  const bytes = readFileSync(inputs[2 * i + 1]);
  const data = new Float32Array(new Uint8Array(bytes).buffer);
  const dims = inputs[2 * i].split("x").map(Number);
  feeds[name] = new ort.Tensor("float32", data, dims);
});
const start = performance.now();
const results = await session.run(feeds);
const ms = performance.now() - start;
const dims = session.outputNames.map((name, i) => {
  const data = Float32Array.from(results[name].data, Number);
  writeFileSync(`${out}.${i}`, new Uint8Array(data.buffer));
  return results[name].dims;
});
console.log(JSON.stringify({ dims, ms }));

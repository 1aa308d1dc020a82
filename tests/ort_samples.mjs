// ort_samples.mjs - one ONNX model through onnxruntime-node, on many samples.
// usage: node ort_samples.mjs FOLDER MODEL DIMS IN OUT LEVEL
// FOLDER: where onnxruntime-node is installed; IN: raw float32 values of the
// model's only input for one sample behind the other, DIMS of one; OUT: the
// first output's, the same way. LEVEL: of optimisation, "all" or "disabled".
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const [folder, model, text, from, to, level] = process.argv.slice(2);
const ort = createRequire(resolve(folder) + "/")("onnxruntime-node");
const session = await ort.InferenceSession.create(model, {
  graphOptimizationLevel: level,
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  logSeverityLevel: 3,
});
const dims = text.split("x").map(Number);
const each = dims.reduce((a, b) => a * b, 1);
const bytes = readFileSync(from);
const all = new Float32Array(new Uint8Array(bytes).buffer);
const out = [];
for (let at = 0; at < all.length; at += each) {
  const tensor = new ort.Tensor("float32", all.slice(at, at + each), dims);
  const result = await session.run({ [session.inputNames[0]]: tensor });
  out.push(...result[session.outputNames[0]].data);
}
writeFileSync(to, new Uint8Array(Float32Array.from(out).buffer));

// native_ort.mjs - how long onnxruntime takes for one model, on one thread.
// usage: node native_ort.mjs FOLDER MODEL TIMES
// FOLDER: where onnxruntime-node is installed. The one input is all 0.5. Prints
// milliseconds of processor time, one run a line, the first two left out.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, model, times] = process.argv.slice(2);
const ort = createRequire(resolve(folder) + "/")("onnxruntime-node");
const session = await ort.InferenceSession.create(model, {
  graphOptimizationLevel: "all",
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: "sequential",
  logSeverityLevel: 3,
});
const size = 3 * 224 * 224;
const input = new ort.Tensor("float32", new Float32Array(size).fill(0.5), [
  1, 3, 224, 224,
]);
for (let i = 0; i < Number(times) + 2; i++) {
  const before = process.cpuUsage();
  await session.run({ [session.inputNames[0]]: input });
  const used = process.cpuUsage(before);
  if (i > 1) console.log((used.user + used.system) / 1000);
}

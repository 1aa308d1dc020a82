// truth_tfjs.mjs - one model through tfjs, on its plain CPU backend.
// usage: node truth_tfjs.mjs FOLDER MODEL.json OUT NAMES [NAME DIMS FILE]...
//        node truth_tfjs.mjs FOLDER MODEL.json
// FOLDER: where @tensorflow/tfjs is installed; MODEL.json: a graph model or a
// layers model with its weights beside it; NAMES: outputs, with commas between
// (of a layers model: "", its own). For each input its name, dims (1x224x224x3)
// and raw little-endian float32 values. Writes OUT.0, OUT.1... in the same raw
// form and prints one line of JSON. Without OUT: the names and shapes of the
// weights that a layers model asks for, in order.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const [folder, path, out, names, ...inputs] = process.argv.slice(2);
const warn = console.warn;
console.warn = console.info = console.log = () => {}; // an advertisement
const tf = createRequire(resolve(folder) + "/")("@tensorflow/tfjs");
await tf.setBackend("cpu");

const bytes = (file) => new Uint8Array(readFileSync(file)).buffer;
const model = JSON.parse(readFileSync(path, "utf8"));
if (out === undefined) {
  const made = await tf.models.modelFromJSON(
    { modelTopology: model.modelTopology });
  process.stdout.write(JSON.stringify(made.weights.map((weight) => ({
    name: weight.originalName, shape: weight.shape, dtype: "float32" }))));
  process.exit(0);
}
const groups = model.weightsManifest ?? [];
const parts = groups.flatMap((group) =>
  group.paths.map((name) => readFileSync(join(dirname(path), name))));
const weights = new Uint8Array(Buffer.concat(parts));
const source = tf.io.fromMemory({
  modelTopology: model.modelTopology,
  weightSpecs: groups.flatMap((group) => group.weights),
  weightData: weights.buffer,
  format: model.format,
});
const feeds = {};
for (let i = 0; i < inputs.length; i += 3)
  feeds[inputs[i]] = tf.tensor(new Float32Array(bytes(inputs[i + 2])),
    inputs[i + 1].split("x").map(Number), "float32");

async function run() {
  if (model.format === "graph-model") {
    const graph = await tf.loadGraphModel(source);
    return graph.executeAsync(feeds, names.split(","));
  }
  const layers = await tf.loadLayersModel(source);
  const given = layers.inputNames.map((name) => feeds[name]);
  return layers.predict(given.length > 1 ? given : given[0]);
}

const results = [await run()].flat();
results.forEach((tensor, i) =>
  writeFileSync(`${out}.${i}`, new Uint8Array(
    Float32Array.from(tensor.dataSync(), Number).buffer)));
process.stdout.write(
  JSON.stringify({ dims: results.map((tensor) => tensor.shape) }) + "\n");

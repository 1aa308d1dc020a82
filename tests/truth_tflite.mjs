// truth_tflite.mjs - one model through TensorFlow Lite itself, as WebAssembly
// in plain node.
// usage: node truth_tflite.mjs FOLDER MODEL.tflite OUT [NAME DIMS FILE]...
// FOLDER: where @tensorflow/tfjs-tflite is installed. For each input, in the
// model's order, raw little-endian values of the type that it has in the file.
// Writes OUT.0, OUT.1... in the same raw form, and prints one line of JSON with
// the outputs' dims and types ("float32", "int8", "uint8", "int32").
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import vm from "node:vm";

const [folder, path, out, ...inputs] = process.argv.slice(2);
const wasm = resolve(folder, "node_modules/@tensorflow/tfjs-tflite/wasm");
const name = "tflite_web_api_cc_simd";
console.log = console.info = console.warn = console.error = () => {};
globalThis.self = globalThis;
globalThis.document = undefined;
vm.runInThisContext(
  readFileSync(join(wasm, name + ".js"), "utf8").replace(/^var /, "globalThis."));
const M = await globalThis.tflite_web_api_ModuleFactory({
  locateFile: (file) => join(wasm, file),
  wasmBinary: readFileSync(join(wasm, name + ".wasm")),
  print: () => {}, printErr: () => {},
});
const model = readFileSync(path);
const at = M._malloc(model.length);
M.HEAPU8.set(model, at);
const made = M.TFLiteWebModelRunner.CreateFromBufferAndOptions(
  at, model.length, { numThreads: 1, enableWebNNDelegate: false,
    enableProfiling: false, maxProfilingBufferEntries: 1 });
if (!made.ok()) throw new Error("it does not load");
const runner = made.value();
const ins = runner.GetInputs();
for (let i = 0; i < ins.size(); i++) {
  const data = ins.get(i).data();
  const bytes = readFileSync(inputs[3 * i + 2]);
  const Kind = data.constructor;
  data.set(new Kind(new Uint8Array(bytes).buffer));
}
if (!runner.Infer()) throw new Error("it does not run");
const outs = runner.GetOutputs();
const dims = [], types = [];
for (let i = 0; i < outs.size(); i++) {
  const tensor = outs.get(i), data = tensor.data();
  writeFileSync(`${out}.${i}`,
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  dims.push(tensor.shape.split(",").map(Number));
  types.push(data.constructor.name.replace("Array", "").toLowerCase());
}
process.stdout.write(JSON.stringify({ dims, types }) + "\n");
process.exit(0);

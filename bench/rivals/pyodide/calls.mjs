// Pyodide in Node: `calls.mjs used ...` sends every call to one interpreter (fresh globals, one file system), with the
// options and the output of the probe; `calls.mjs once --code TEXT` starts, runs one program and ends. `--packages a,b`
// loads packages first.

import { parseArgs } from "node:util";
import { loadPyodide } from "pyodide";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(
    ["code", "expect", "count", "warm-up", "rate", "start", "packages"].map((name) => [name, { type: "string" }]),
  ),
});
const number = (name) => Number(values[name] ?? 0);
const now = () => process.hrtime.bigint();

let printed = "";
const python = await loadPyodide({ stdout: (line) => (printed += line + "\n") });
if (values.packages) {
  const wanted = values.packages.split(",");
  await python.loadPackage(wanted, { messageCallback: () => {} });
  for (const name of wanted) python.pyimport(name);
}

function run(code) {
  printed = "";
  const globals = python.toPy({});
  python.runPython(code, { globals });
  globals.destroy();
  return printed;
}

async function waitUntil(moment) {
  const left = Number(moment - now()) / 1e6;
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
}

async function measure() {
  const samples = [];
  let failures = 0;
  let began = 0n;
  let ended = 0n;
  let unique = 10_000_000 + Math.floor(Math.random() * 80_000_000);
  const start = values.start ? BigInt(values.start) : now();
  const period = number("rate") ? BigInt(Math.round(1e9 / number("rate"))) : 0n;
  for (let index = 0; index < number("count") + number("warm-up"); index += 1) {
    unique += 1;
    const code = values.code.replaceAll("%UNIQUE%", unique);
    if (period) await waitUntil(start + BigInt(index) * period);
    const started = now();
    const output = run(code);
    ended = now();
    if (!output.includes((values.expect ?? "").replaceAll("%UNIQUE%", unique))) {
      failures += 1;
    } else if (index >= number("warm-up")) {
      if (began === 0n) began = started;
      samples.push(Number(ended - started));
    }
  }
  console.log(JSON.stringify({ failures, elapsed: Number(ended - began), samples }));
}

if (positionals[0] === "used") {
  await measure();
} else {
  process.stdout.write(run(values.code));
}

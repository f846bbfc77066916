// What scripts that are clients check: each check prints ok and its name, or FAILED with what came instead. Call end last.
import { readSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

let failed = 0;

export function check(name, got, want) {
  if (isDeepStrictEqual(got, want)) console.log("ok", name);
  else fail(name, "got", got, "want", want);
}

function fail(...words) {
  failed = 1;
  console.log("FAILED", ...words);
}

export async function rejects(name, kind, does) {
  let got;
  try {
    got = await does();
  } catch (e) {
    if (e.constructor.name === kind) console.log("ok", name);
    else fail(name, "threw", e);
    return;
  }
  fail(name, "gave", got);
}

// look has the test look for itself at what is there, and returns when it has.
export function look(there) {
  console.log("look", JSON.stringify(there));
  const line = Buffer.alloc(1);
  while (readSync(0, line) === 1 && line[0] !== 10);
}

export function end() {
  process.exit(failed);
}

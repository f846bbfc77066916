// What TypeScript's SDK does with language servers, and what comes of it.
import { createRequire } from "node:module";
import { check, end, rejects } from "../../checks/checks.mjs";

const { Daytona } = createRequire(import.meta.url)(process.env.SDK);

const d = new Daytona();
const s = await d.create();
await s.fs.uploadFile(Buffer.from("{}"), "web/tsconfig.json");
await s.fs.uploadFile(Buffer.from("export class Basket {\n  /** Put some in. */\n  add(n: number): number { return n }\n}\n"), "web/src/basket.ts");
await s.fs.uploadFile(Buffer.from('import { Basket } from "./basket"\nnew Basket().\n'), "web/src/main.ts");
await s.fs.uploadFile(Buffer.from("function total(list) { return list.length }\nlist.\n"), "web/plain.js");

const names = (all) => all.map((x) => x.name);
const labels = (list) => list.items.map((x) => x.label);
for (const language of ["typescript", "javascript"]) {
  const lsp = await s.createLspServer(language, "web");
  await rejects(`${language}: before a start`, "DaytonaLspServerNotInitializedError", () => lsp.sandboxSymbols("x"));
  await lsp.start();
  if (language === "typescript") {
    await rejects("typescript: symbols of no file", "DaytonaConflictError", () => lsp.sandboxSymbols("Basket"));
    await lsp.didOpen("web/src/main.ts");
    const list = await lsp.completions("web/src/main.ts", { line: 1, character: 13 });
    check("typescript: completions", [labels(list).includes("add"), typeof list.isIncomplete], [true, "boolean"]);
    const symbols = await lsp.documentSymbols("web/src/basket.ts");
    check("typescript: symbols", names(symbols).sort(), ["Basket", "add"]);
    check("typescript: a symbol", symbols.find((x) => x.name === "Basket").location, {
      uri: "file:///home/daytona/web/src/basket.ts",
      range: { start: { line: 0, character: 0 }, end: { line: 3, character: 1 } },
    });
    check("typescript: symbols of all files", names(await lsp.sandboxSymbols("Basket")).includes("Basket"), true);
    await lsp.didClose("web/src/main.ts");
    await rejects("typescript: a file that is not there", "DaytonaFileNotFoundError", () => lsp.didOpen("web/none.ts"));
  } else {
    await lsp.didOpen("web/plain.js");
    check("javascript: symbols", names(await lsp.documentSymbols("web/plain.js")).includes("total"), true);
  }
  await lsp.stop();
  await rejects(`${language}: after a stop`, "DaytonaLspServerNotInitializedError", () => lsp.documentSymbols("x"));
}
await s.delete();
end();

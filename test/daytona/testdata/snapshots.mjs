// What TypeScript's SDK does with snapshots, and what comes of it.
import { createRequire } from "node:module";
import { mkdirSync, writeFileSync } from "node:fs";
import { check, end, rejects } from "../../checks/checks.mjs";

const { Daytona, Image } = createRequire(import.meta.url)(process.env.SDK);

const d = new Daytona();
let s = await d.snapshot.create({ name: "of-image", image: "python" });
check("of an image", [s.state, (await d.snapshot.get(s.id)).name], ["active", "of-image"]);
const serving = await d.create({ snapshot: (await d.snapshot.create({ name: "serving", image: "python", entrypoint: ["sh", "-c", "echo out; echo err >&2"] })).name });
let [out, err] = ["", ""];
await serving.process.getEntrypointLogs((x) => (out += x), (x) => (err += x));
check("its entrypoint", [(await serving.process.getEntrypointSession()).commands.map((x) => x.exitCode), out, err], [[0], "out\n", "err\n"]);
await serving.delete();
await d.snapshot.delete("serving");
check("list", (await d.snapshot.list(1, 10)).items.map((x) => x.name), ["of-image"]);

// Local files, one of them larger than a part of an upload, and a package that needs no network.
const dir = process.env.HOME + "/local";
mkdirSync(dir + "/src/sub", { recursive: true });
writeFileSync(dir + "/one.txt", "one");
writeFileSync(dir + "/src/a.txt", "a");
writeFileSync(dir + "/src/sub/b.txt", "b");
writeFileSync(dir + "/big", Buffer.alloc(11 << 20, 7));
const wheel = "/opt/" + process.env.WHEEL.split("/").pop();
const image = Image.base("python")
  .addLocalFile(process.env.WHEEL, wheel)
  .runCommands(`python3 -m pip install --no-index --break-system-packages ${wheel}`)
  .addLocalFile(dir + "/one.txt", "/opt/one.txt")
  .addLocalDir(dir + "/src", "/opt/src")
  .addLocalFile(dir + "/big", "/opt/big");
const logs = [];
s = await d.snapshot.create({ name: "declarative", image, resources: { cpu: 1, memory: 1, disk: 4 } }, { onLogs: (x) => logs.push(x) });
check("declarative", [s.state, s.buildInfo.contextHashes.length], ["active", 4]);
check("its log", [logs[0], /Successfully installed/.test(logs.join("\n")), logs.at(-1)], ["Creating snapshot declarative (building)", true, "Created snapshot declarative (active)"]);
let box = await d.create({ snapshot: "declarative" });
check("what was sent", (await box.process.executeCommand("cat /opt/one.txt /opt/src/a.txt /opt/src/sub/b.txt; wc -c < /opt/big")).result, "oneab11534336\n");
check("what was installed", (await box.process.codeRun("import sandpit_wheel; print(sandpit_wheel.word)")).result, "here\n");
await box._experimental_createSnapshot("of-sandbox");
check("of a sandbox", [(await d.snapshot.get("of-sandbox")).sourceSandboxId, box.state], [box.id, "started"]);
await box.delete();

// The same files are sent again, since they were removed once they were built; steps that were done are not.
logs.length = 0;
const local = Image.base("python").addLocalFile(dir + "/one.txt", "/opt/two.txt").runCommands("echo from the build");
box = await d.create({ image: local }, { onSnapshotCreateLogs: (x) => logs.push(x) });
check("a sandbox of local files", [box.state, (await box.process.executeCommand("cat /opt/two.txt")).result, /from the build/.test(logs.join("\n"))], ["started", "one", true]);
await box.delete();
logs.length = 0;
box = await d.create({ image: local }, { onSnapshotCreateLogs: (x) => logs.push(x) });
check("of the same image again", [box.state, (await box.process.executeCommand("cat /opt/two.txt")).result, logs], ["started", "one", []]);
await box.delete();
await rejects("a build that fails", "DaytonaError", () => d.create({ name: "fails", image: Image.base("python").runCommands("exit 7") }, { onSnapshotCreateLogs: () => {} }));
check("that has failed", (box = await d.get("fails")) && [box.state, /exit code 7/.test(box.errorReason)], ["build_failed", true]);
await box.delete();
await rejects("a name that is taken", "DaytonaConflictError", () => d.snapshot.create({ name: "declarative", image: "python" }));
await rejects("a step that fails", "DaytonaError", () => d.snapshot.create({ name: "failing", image: Image.base("python").runCommands("exit 7") }));
check("a failed one", (await d.snapshot.get("failing")).state, "build_failed");
for (const name of ["failing", "of-sandbox", "declarative", "of-image"]) await d.snapshot.delete(name);
await rejects("deleted", "DaytonaNotFoundError", () => d.snapshot.get("declarative"));
end();

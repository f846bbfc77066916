// What TypeScript's SDK does, and what comes of it.
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const { Daytona } = createRequire(import.meta.url)(process.env.SDK);
let failed = 0;

function check(name, got, want) {
  if (isDeepStrictEqual(got, want)) console.log("ok", name);
  else {
    failed = 1;
    console.log("FAILED", name, "got", got, "want", want);
  }
}

async function rejects(name, kind, does) {
  try {
    const got = await does();
    failed = 1;
    console.log("FAILED", name, "gave", got);
  } catch (e) {
    if (e.constructor.name === kind) console.log("ok", name);
    else {
      failed = 1;
      console.log("FAILED", name, "threw", e);
    }
  }
}

const d = new Daytona();
const s = await d.create({ labels: { team: "a" }, envVars: { X: "1" } });
check("create", s.state, "started");
let r = await s.process.executeCommand("echo $X; exit 3");
check("exec", [r.exitCode, r.result], [3, "1\n"]);
await rejects("exec: timeout", "DaytonaProcessExecutionTimeoutError", () => s.process.executeCommand("sleep 60", undefined, undefined, 1));
r = await s.process.codeRun("print(1+1)");
check("codeRun", [r.exitCode, r.result], [0, "2\n"]);
await s.fs.uploadFile(Buffer.from("hello"), "x/y.txt");
check("files", (await s.fs.downloadFile("x/y.txt")).toString(), "hello");
check("files: list", (await s.fs.listFiles("x")).map((f) => f.name), ["y.txt"]);
await rejects("files: what is not there", "DaytonaFileNotFoundError", () => s.fs.downloadFile("none"));
const down = await s.downloadUrl("x/a b+ü.txt"), up = await s.uploadUrl("x/a b+ü.txt", 60);
const form = new FormData();
form.append("file", new Blob(["by an address"]), "f");
check("signed: up", (await fetch(up, { method: "POST", body: form })).status, 200);
check("signed: down", await (await fetch(down)).text(), "by an address");
await s.rotateSigningKey();
check("signed: after another key", [(await fetch(down)).status, (await fetch(await s.downloadUrl("x/a b+ü.txt"))).status], [401, 200]);
await s.process.createSession("a");
r = await s.process.executeSessionCommand("a", { command: "echo 1; echo 2 >&2" });
check("session", [r.exitCode, r.stdout, r.stderr], [0, "1\n", "2\n"]);
r = await s.process.executeSessionCommand("a", { command: "for i in 1 2; do echo $i; sleep .1; done", runAsync: true });
let out = "";
await s.process.getSessionCommandLogs("a", r.cmdId, (text) => { out += text; }, () => {});
check("session: followed", out, "1\n2\n");
const waits = await s.process.executeSessionCommand("a", { command: "read x", runAsync: true });
r = await s.process.executeSessionCommand("a", { command: "echo after", runAsync: true });
check("session: in turn", (await s.process.getSessionCommand("a", r.cmdId)).exitCode, undefined);
out = "";
const followed = s.process.getSessionCommandLogs("a", r.cmdId, (text) => { out += text; }, () => {});
await s.process.sendSessionCommandInput("a", waits.cmdId, "go\n");
await followed;
check("session: followed from before its turn", out, "after\n");
out = "";
const pty = await s.process.createPty({ id: "p", cols: 90, rows: 20, onData: (b) => { out += Buffer.from(b).toString(); } });
await pty.waitForConnection();
await pty.sendInput("stty size; exit 4\n");
check("terminal", [(await pty.wait()).exitCode, out.includes("20 90")], [4, true]);
const secret = await d.secret.create({ name: "key", value: "value-of-key", hosts: ["api.example.com"] });
await s.updateSecrets({ KEY: "key" });
check("secrets", [secret.name, (await s.process.executeCommand("echo $KEY")).result, (await d.secret.list()).items.map((x) => x.name)], ["key", secret.placeholder + "\n", ["key"]]);
await d.secret.delete(secret.id);
await rejects("secrets: deleted", "DaytonaNotFoundError", () => d.secret.get(secret.id));
const samples = await s.getMetrics();
check("metrics", [samples.length > 0, samples.every((m) => m.cpuCount === 1 && m.memTotal === 2 ** 30), samples.at(-1).memUsed > 0], [true, true, true]);
check("metrics: of another day", await s.getMetrics(new Date("2000-01-01"), new Date("2000-01-02")), []);
check("list", await (async () => {
  const all = [];
  for await (const x of d.list({ labels: { team: "a" } })) all.push(x.id);
  return all;
})(), [s.id]);
await s.stop();
check("stop", s.state, "stopped");
await s.start();
check("start", s.state, "started");
await s.delete();
await rejects("deleted", "DaytonaNotFoundError", () => d.get(s.id));
process.exit(failed);

// What an older SDK for TypeScript does on its first day: create, commands, code, files, a session, a terminal, list, delete.
import { createRequire } from "node:module";
import { check, end } from "../../checks/checks.mjs";

const { Daytona } = createRequire(import.meta.url)(process.env.SDK);

// listed are the ids of what list gives: pages before 0.180, then what is iterated over.
async function listed(d) {
  const got = d.list();
  if (!got[Symbol.asyncIterator]) return (await got).items.map((s) => s.id);
  const all = [];
  for await (const s of got) all.push(s.id);
  return all;
}

const d = new Daytona();
const s = await d.create({ labels: { team: "a" }, envVars: { X: "1" } });
check("create", [s.state, s.labels.team, s.cpu, s.env], ["started", "a", 1, { X: "1" }]);
check("get", (await d.get(s.id)).id, s.id);
check("list", await listed(d), [s.id]);
const { process: p, fs } = s;
let r = await p.executeCommand("echo $X; echo err >&2; exit 3");
check("exec", [r.exitCode, r.result.trim()], [3, "1\nerr"]);
r = await p.codeRun("print('a\"b', 1 + 1)");
check("codeRun", [r.exitCode, r.result.trim()], [0, 'a"b 2']);
r = await p.codeRun("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('T')\nplt.show()\nprint('after')");
check("codeRun: a chart", [r.exitCode, r.result.trim(), r.artifacts.charts.map((c) => [c.type, c.title, Buffer.from(c.png, "base64").subarray(1, 4).toString()])], [0, "after", [["line", "T", "PNG"]]]);
check("codeRun: an exception", (await p.codeRun("1/0")).exitCode, 1);
await fs.createFolder("a", "755");
await fs.uploadFile(Buffer.from("hello"), "a/b.txt");
check("files", [(await fs.downloadFile("a/b.txt")).toString(), (await fs.getFileDetails("a/b.txt")).size, (await fs.listFiles("a")).map((f) => f.name)], ["hello", 5, ["b.txt"]]);
check("files: find", (await fs.findFiles("a", "hell")).map((m) => m.content), ["hello"]);
await fs.moveFiles("a/b.txt", "a/c.txt");
await fs.deleteFile("a/c.txt");
check("files: deleted", await fs.listFiles("a"), []);
await p.createSession("s");
r = await p.executeSessionCommand("s", { command: "cd /tmp; echo out; echo err >&2" });
check("session", [r.exitCode, r.stdout, r.stderr], [0, "out\n", "err\n"]);
r = await p.executeSessionCommand("s", { command: "pwd; for i in 1 2; do echo $i >&2; sleep 0.1; done", runAsync: true });
const seen = { out: "", err: "" };
await p.getSessionCommandLogs("s", r.cmdId, (t) => { seen.out += t; }, (t) => { seen.err += t; });
check("session: followed", seen, { out: "/tmp\n", err: "1\n2\n" });
const logs = await p.getSessionCommandLogs("s", r.cmdId);
check("session: logs", [logs.stdout, logs.stderr], ["/tmp\n", "1\n2\n"]);
check("session: its end", (await p.getSessionCommand("s", r.cmdId)).exitCode, 0);
await p.deleteSession("s");
let out = "";
const pty = await p.createPty({ id: "t", cwd: "/tmp", envs: { FOO: "bar" }, cols: 100, rows: 30, onData: (b) => { out += Buffer.from(b).toString(); } });
await pty.waitForConnection();
await pty.sendInput("echo $FOO; stty size; pwd; exit 3\n");
r = await pty.wait();
check("terminal", [r.exitCode, out.includes("bar\r\n30 100\r\n/tmp\r\n")], [3, true]);
const v = await d.volume.get("data", true);
check("volume", (await d.volume.list()).map((x) => x.name), ["data"]);
await d.volume.delete(v);
check("preview", (await s.getPreviewLink(3000)).url.startsWith("http"), true);
await s.stop();
check("stop", s.state, "stopped");
await s.start();
check("start", s.state, "started");
await s.delete();
check("delete", await listed(d), []);
end();

// Calls every public method of TypeScript's SDK, which is in the directory SDK, and writes to the file of the argument what
// came of each: {"Class.method": ["ok", "DaytonaXError"]}, with nothing for a method that was not called.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Readable } from "node:stream";

const require = createRequire(import.meta.url);
const modules = path.join(process.env.SDK, "cjs");
const outcomes = {};

function note(key, error) {
  const outcome = error ? error.constructor.name : "ok";
  if (!outcomes[key].includes(outcome)) outcomes[key].push(outcome);
}

async function* iterates(key, things) {
  try {
    yield* things;
  } catch (e) {
    note(key, e);
    throw e;
  }
  note(key);
}

// watched does what a method does, and notes how it ends: also of what is awaited, and of what is iterated over.
function watched(key, does) {
  return function (...args) {
    let got;
    try {
      got = does.apply(this, args);
    } catch (e) {
      note(key, e);
      throw e;
    }
    if (got instanceof Promise) {
      got.then(() => note(key), (e) => note(key, e));
      return got;
    }
    if (got?.[Symbol.asyncIterator]) return iterates(key, got);
    note(key);
    return got;
  };
}

for (const file of readdirSync(modules).filter((f) => f.endsWith(".js"))) {
  const declared = readFileSync(path.join(modules, file.replace(/js$/, "d.ts")), "utf8");
  for (const [name, cls] of Object.entries(require(path.join(modules, file)))) {
    if (typeof cls !== "function" || !new RegExp(`export declare class ${name}\\b`).test(declared) || cls.prototype instanceof Error) continue;
    for (const on of [cls.prototype, cls]) {
      for (const [method, { value, writable }] of Object.entries(Object.getOwnPropertyDescriptors(on))) {
        const hidden = new RegExp(`^\\s+(private|protected) (static |async )*${method}\\b`, "m").test(declared);
        if (typeof value !== "function" || !writable || method === "constructor" || method.startsWith("_") || hidden) continue;
        const key = `${name}.${method}`;
        outcomes[key] = [];
        on[method] = watched(key, value);
      }
    }
  }
}

const { Daytona } = require(process.env.SDK);

// tried gives what a call gives, or nothing where it is refused: which that is the table says.
async function tried(does) {
  try {
    return await does();
  } catch {
    return undefined;
  }
}

async function all(things) {
  const list = [];
  for await (const x of things) list.push(x);
  return list;
}

const quiet = () => {};

async function sandboxes(d, s) {
  const v = await d.volume.create("other");
  await d.volume.list();
  await d.volume.delete(v);
  await d.get(s.id);
  await all(d.list());
  await d.stop(s);
  await s.waitUntilStopped();
  await d.start(s);
  await s.waitUntilStarted();
  await s.setLabels({ a: "b" });
  await s.setAutoArchiveInterval(60);
  await s.setAutoDeleteInterval(60);
  await s.setTtl(60);
  await s.setAutostopInterval(0);
  await s.setAutoPauseInterval(60);
  await s.updateNetworkSettings({ domainAllowList: "example.com" });
  await s.updateEnv({ A: "b" }, { unset: ["C"] });
  await s.refreshActivity();
  await s.refreshData();
  await s.getUserHomeDir();
  await s.getUserRootDir();
  await s.getWorkDir();
  await s.getMetricsLatest();
  await s.getMetrics(new Date(Date.now() - 3600_000), new Date());
  await s.getPreviewLink(3000);
  const signed = await s.getSignedPreviewUrl(3000, 60);
  await s.expireSignedPreviewUrl(3000, signed.token);
  await tried(() => s.downloadUrl("/etc/hostname"));
  await tried(() => s.uploadUrl("/tmp/x"));
  await tried(() => s.rotateSigningKey());
  await tried(() => s.createSshAccess(10));
  await tried(() => s.validateSshAccess("x"));
  await tried(() => s.revokeSshAccess("x"));
}

// resources are what is kept beside sandboxes: snapshots, secrets and pools.
async function resources(d, s) {
  await tried(() => s.createSnapshot("of-a-sandbox"));
  await tried(() => d.snapshot.create({ name: "of-an-image", image: "python", entrypoint: ["echo", "began"] }));
  const began = await d.create({ snapshot: "of-an-image" });
  await tried(() => began.process.getEntrypointSession());
  await tried(() => began.process.getEntrypointLogs());
  await began.delete();
  await tried(() => d.snapshot.list());
  const snapshot = (await tried(() => d.snapshot.get("of-a-sandbox"))) ?? { id: "none" };
  await tried(() => d.snapshot.activate(snapshot));
  const { id: secret = "none" } = (await tried(() => d.secret.create({ name: "TOKEN", value: "a-value-of-a-secret", hosts: ["example.com"] }))) ?? {};
  await tried(() => d.secret.list());
  await tried(() => d.secret.get(secret));
  await tried(() => d.secret.update(secret, { value: "another-value" }));
  await tried(() => s.updateSecrets({ TOKEN: "TOKEN" }));
  await tried(() => s.updateSecrets({}));
  await tried(() => d.secret.delete(secret));
  const { id: pool = "none" } = (await tried(() => d.warmPool.create({ snapshot: "python", pool: 1 }))) ?? {};
  await tried(() => d.warmPool.list());
  await tried(() => d.warmPool.update(pool, { pool: 2 }));
  await tried(() => d.warmPool.delete(pool));
  await tried(() => d.snapshot.delete(snapshot));
}

// states are what a sandbox can be beside running.
async function states(d, s) {
  await s.resize({ cpu: 2 });
  await s.waitForResizeComplete();
  await d.delete(await d.fork(s));
  const f = await s.fork();
  await f.pause();
  await f.start();
  await f.stop();
  await f.recover();
  await f.stop();
  await f.archive();
  await f.delete();
  await d.delete(s);
}

async function processes(s) {
  const p = s.process;
  await p.executeCommand("true");
  await p.codeRun("print(1)");
  await p.createSession("s");
  await p.listSessions();
  const r = await p.executeSessionCommand("s", { command: "read x; echo $x", runAsync: true });
  await p.sendSessionCommandInput("s", r.cmdId, "y\n");
  await p.getSessionCommandLogs("s", r.cmdId, quiet, quiet);
  await p.getSessionCommandLogs("s", r.cmdId);
  await p.getSessionCommand("s", r.cmdId);
  await p.getSession("s");
  await p.deleteSession("s");
  let h = await p.createPty({ id: "t", cols: 100, rows: 30, onData: quiet });
  await h.waitForConnection();
  h.isConnected();
  await p.listPtySessions();
  await p.getPtySessionInfo("t");
  await p.resizePtySession("t", 101, 31);
  await h.resize(102, 32);
  await (await p.connectPty("t", { onData: quiet })).disconnect();
  await h.sendInput("exit 3\n");
  await h.wait();
  h = await p.createPty({ id: "u", onData: quiet });
  await h.kill();
  h = await p.createPty({ id: "v", onData: quiet });
  await p.killPtySession("v");
  const c = s.codeInterpreter;
  const own = await c.createContext("/tmp");
  await c.listContexts();
  await c.runCode("1", { context: own });
  await c.deleteContext(own);
}

async function files(s) {
  const { fs } = s;
  await fs.createFolder("a", "755");
  await fs.uploadFile(Buffer.from("hello"), "a/b");
  await fs.uploadFiles([{ source: Buffer.from("x"), destination: "a/c" }, { source: Buffer.from("y"), destination: "a/d" }]);
  await fs.uploadFileStream(Readable.from([Buffer.alloc(50_000, "z"), Buffer.alloc(50_000, "z")]), "a/e");
  await fs.listFiles("a");
  await fs.getFileDetails("a/b");
  await fs.findFiles("a", "hell");
  await fs.searchFiles("a", "b*");
  await fs.replaceInFiles(["a/b"], "hello", "bye");
  await fs.setFilePermissions("a/b", { mode: "600" });
  await fs.moveFiles("a/b", "a/f");
  await fs.downloadFile("a/f");
  await fs.downloadFiles([{ source: "a/c" }, { source: "a/d" }]);
  const got = Buffer.concat(await all(await fs.downloadFileStream("a/e")));
  if (!got.equals(Buffer.alloc(100_000, "z"))) throw new Error(`a stream gave ${got.length} bytes`);
  await fs.deleteFile("a", true);
}

const serve = String.raw`mkdir -p srv/cgi-bin && git init -q --bare -b main srv/r.git && git -C srv/r.git config http.receivepack true
printf '#!/bin/sh\nexport GIT_PROJECT_ROOT=%s/srv GIT_HTTP_EXPORT_ALL=1\nexec git http-backend\n' "$HOME" > srv/cgi-bin/git
chmod +x srv/cgi-bin/git; cd srv; python3 -u -m http.server --bind 127.0.0.1 --cgi 8000`;

async function repositories(s) {
  const { git: g, process: p } = s;
  const at = "http://127.0.0.1:8000/cgi-bin/git/r.git";
  await p.createSession("git");
  await p.executeSessionCommand("git", { command: serve, runAsync: true });
  await p.executeCommand("until curl -s -o /dev/null http://127.0.0.1:8000/; do sleep 0.1; done", undefined, undefined, 60);
  await g.init("r", false, "main");
  await g.configureUser("A", "a@b.c");
  await g.setConfig("core.abbrev", "12");
  await g.getConfig("core.abbrev");
  await s.fs.uploadFile(Buffer.from("x"), "r/a");
  await g.add("r", ["a"]);
  await g.commit("r", "first", "A", "a@b.c");
  await g.status("r");
  await g.createBranch("r", "dev");
  await g.branches("r");
  await g.checkoutBranch("r", "main");
  await g.deleteBranch("r", "dev");
  await s.fs.uploadFile(Buffer.from("y"), "r/a");
  await g.restore("r", ["a"]);
  await g.reset("r", "hard");
  await g.remoteAdd("r", "origin", at);
  await g.remotes("r");
  await g.remoteGet("r", "origin");
  await g.push("r", undefined, undefined, "main", "origin", true);
  await g.clone(at, "r2");
  await g.pull("r2");
  await tried(() => g.dangerouslyAuthenticate("user", "password", "127.0.0.1:8000", "http"));
}

async function languageServers(s) {
  await s.fs.uploadFile(Buffer.from("def hello():\n    return 1\n\nhello()\n"), "lsp/main.py");
  const server = await s.createLspServer("python", "lsp");
  await tried(() => server.start());
  await tried(() => server.didOpen("main.py"));
  await tried(() => server.documentSymbols("main.py"));
  await tried(() => server.workspaceSymbols("hello"));
  await tried(() => server.sandboxSymbols("hello"));
  await tried(() => server.completions("main.py", { line: 3, character: 2 }));
  await tried(() => server.didClose("main.py"));
  await tried(() => server.stop());
}

async function desktop(s) {
  const c = s.computerUse;
  const { mouse: m, keyboard: k, screenshot: shot, display: show, accessibility: a11y, recording: rec } = c;
  const region = { x: 0, y: 0, width: 10, height: 10 };
  for (const does of [
    () => c.start(), () => c.getStatus(), () => c.getProcessStatus("xvfb"), () => c.restartProcess("xvfb"), () => c.getProcessLogs("xvfb"),
    () => c.getProcessErrors("xvfb"), () => m.getPosition(), () => m.move(1, 1), () => m.click(1, 1), () => m.drag(1, 1, 2, 2), () => m.scroll(1, 1, "up"),
    () => k.type("x"), () => k.press("x"), () => k.hotkey("ctrl+c"), () => shot.takeFullScreen(), () => shot.takeRegion(region), () => shot.takeCompressed(),
    () => shot.takeCompressedRegion(region), () => show.getInfo(), () => show.getWindows(), () => a11y.getTree(), () => a11y.findNodes(),
    () => a11y.focusNode("x"), () => a11y.invokeNode("x"), () => a11y.setNodeValue("x", "y"), () => rec.start(), () => rec.stop("x"), () => rec.list(),
    () => rec.get("x"), () => rec.delete("x"), () => rec.download("x", "/dev/null"), () => c.stop(),
  ]) await tried(does);
}

const d = new Daytona();
const v = await d.volume.get("data", true);
const s = await d.create({ volumes: [{ volumeId: v.id, mountPath: "/data" }] });
await sandboxes(d, s);
await processes(s);
await files(s);
await repositories(s);
await languageServers(s);
await desktop(s);
await resources(d, s);
await states(d, s);
writeFileSync(process.argv[2], JSON.stringify(outcomes, null, 1));
process.exit(0);

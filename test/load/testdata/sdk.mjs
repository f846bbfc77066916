// Clients of Daytona's SDK for TypeScript under a server that is killed: sdk.py in another language, see there.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const errors = createRequire(import.meta.url)(process.env.SDK);
const { Daytona, DaytonaError, DaytonaConnectionError, DaytonaRateLimitError, DaytonaConflictError, DaytonaNotFoundError, DaytonaGoneError } = errors;
const [own, clients, most] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const BOUND = 60_000; // of what is waited for: far more than it takes
const NEVER_BEGAN = 127; // the exit code of a command on record whose turn had not come when the server was killed
const KEEP = 20; // records of a kind and sandbox that are looked at again each time

const d = new Daytona();
const boxes = new Map();
const [kinds, seen, streams] = [{}, {}, {}];
let [dead, unsure, names, answers, tasks, resting, rest, busy] = [[], [], 0, 0, [], false, null, null];

// Wrong is an answer that is not what it shall be.
class Wrong extends Error {
  constructor(...words) {
    super(words.join(" "));
  }
}
const fail = (...words) => console.log("FAILED", ...words.map((w) => (w instanceof Error ? `${w.name} ${w.statusCode} ${w.message}` : w)));
const count = (of, what) => (of[what] = (of[what] ?? 0) + 1);
const below = (n) => Math.floor(Math.random() * n);
const oneOf = (list) => list[below(list.length)];
const last = (list) => [...list].slice(-KEEP);
const bounded = (promise, what) => {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what} is waited for`)), BOUND)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

// What clients do.

async function work() {
  [resting, rest, busy, answers] = [false, Promise.withResolvers(), Promise.withResolvers(), 0];
  tasks = Array.from({ length: clients }, () => client());
  for (const b of boxes.values()) tasks.push(watchTerminal(b), watchLogs(b));
  await bounded(busy.promise, "the first answers");
}

async function client() {
  while (!resting) {
    const began = Date.now();
    const b = some();
    let kind = b ? oneOf(["exec", "files", "noFile", "session", "session", "command", "noSession", "terminal", "terminal", "remove"]) : "create";
    if (kind === "remove" && below(5)) kind = "exec";
    try {
      await bounded(acts[kind](b, `${own}-${++names}`), kind);
      count(kinds, kind);
      if (++answers >= 5 * clients) busy.resolve();
    } catch (x) {
      if (broken(kind, b, began, x)) await rest.promise;
    }
  }
}

// broken reports whether an error is that the server is gone, and fails for one that should not be.
function broken(kind, b, began, x) {
  count(seen, x.name);
  if (x instanceof Wrong && b?.leaving) return false;
  if (!(x instanceof DaytonaError)) fail(kind, "throws", x);
  else if (x instanceof DaytonaRateLimitError || (b?.leaving && !(x.statusCode >= 500))) return x.statusCode === undefined;
  else if ([DaytonaConflictError, DaytonaNotFoundError, DaytonaGoneError].some((k) => x instanceof k)) unsure.push({ kind, began, ended: Date.now(), x, answered: true }); // the SDK may have asked twice
  else if (x instanceof DaytonaConnectionError || x.statusCode === undefined || x.statusCode === 503) {
    unsure.push({ kind, began, ended: Date.now(), x }); // only a kill explains it, and the start after it
    return true;
  } else fail(kind, x);
  return false;
}

function some() {
  const there = [...boxes.values()].filter((b) => !b.leaving);
  if (there.length === 0 || (there.length < most && below(4) === 0)) return undefined;
  return oneOf(there);
}

const acts = { create, exec, files, noFile, session, command, noSession, terminal, remove };

async function create(_, name) {
  const s = await d.create({ name, networkBlockAll: true });
  await s.refreshData(); // an event of what was before may have come after the answer
  if (s.state !== "started" || s.name !== name) throw new Wrong("a create of", name, "gives", s.name, s.state);
  await s.process.createSession("watched");
  const watched = (await s.process.executeSessionCommand("watched", { command: "echo begun; sleep 6000", runAsync: true })).cmdId;
  boxes.set(s.id, { s, id: s.id, leaving: false, watched, files: new Map(), noFiles: [], sessions: new Map(), ended: [], commands: new Map(), terminals: new Set() });
}

async function exec(b, name) {
  const code = below(100);
  const r = await b.s.process.executeCommand(`echo ${name}; echo err >&2; exit ${code}`);
  if (r.exitCode !== code || r.result !== name + "\nerr\n") throw new Wrong(b.id, "a command that ends with", code, "gives", r.exitCode, JSON.stringify(r.result));
}

async function files(b, name) {
  const all = [["dir/" + name, name.repeat(1 + below(2000))], [name, name]];
  await b.s.fs.uploadFiles(all.map(([destination, text]) => ({ source: Buffer.from(text), destination })));
  for (const [path, text] of all) b.files.set(path, text);
}

async function noFile(b, name) {
  await b.s.fs.uploadFile(Buffer.from(name), "gone-" + name);
  await b.s.fs.deleteFile("gone-" + name);
  b.noFiles.push("gone-" + name);
}

async function aSession(b, name) {
  if (b.sessions.size >= 3) return oneOf([...b.sessions.keys()]);
  await b.s.process.createSession("s-" + name);
  await b.s.process.executeSessionCommand("s-" + name, { command: "kept=first" });
  b.sessions.set("s-" + name, "first");
  return "s-" + name;
}

async function session(b, name) {
  const s = await aSession(b, name);
  const r = await b.s.process.executeSessionCommand(s, { command: `kept="$kept ${name}"; echo "$kept"` });
  if (r.exitCode !== 0 || !r.stdout.endsWith(` ${name}\n`)) throw new Wrong(b.id, "the session", s, "gives", r.exitCode, JSON.stringify(r.stdout));
  if (r.stdout.length > b.sessions.get(s).length) b.sessions.set(s, r.stdout.trimEnd()); // another client may have had its answer before
}

async function command(b, name) {
  const [s, code] = [await aSession(b, name), below(100)];
  const r = await b.s.process.executeSessionCommand(s, { command: `echo begun ${name}; sleep 0.0${below(10)}; (exit ${code})`, runAsync: true });
  b.commands.set(r.cmdId, [s, `begun ${name}\n`, code]);
}

async function noSession(b, name) {
  await b.s.process.createSession("e-" + name);
  await b.s.process.deleteSession("e-" + name);
  b.ended.push("e-" + name);
}

async function terminal(b, name) {
  if (b.terminals.size >= 2) return types(b, oneOf([...b.terminals]), name);
  const t = "t-" + name;
  await typed((onData) => b.s.process.createPty({ id: t, cols: 200, rows: 24, onData }), `kept=$((6*7))${t}; echo "<$kept>"`, `<42${t}>`);
  b.terminals.add(t);
}

const types = (b, t, name) => typed((onData) => b.s.process.connectPty(t, { onData }), `echo "<$kept-$((6*7))-${name}>"`, `<42${t}-42-${name}>`);

async function typed(connect, line, want) {
  let said = "";
  const heard = Promise.withResolvers();
  const h = await connect((data) => {
    said += Buffer.from(data).toString();
    if (said.includes(want)) heard.resolve(true);
  });
  try {
    await h.waitForConnection();
    await h.sendInput(line + "\n");
    const end = await Promise.race([heard.promise, h.wait()]);
    if (end === true) return;
    if (end.exitCode !== undefined) throw new Wrong("a terminal ended with", end.exitCode, end.error);
    throw new DaytonaConnectionError("the terminal's connection ended");
  } finally {
    await h.disconnect();
  }
}

async function remove(b) {
  b.leaving = true;
  await d.delete(b.s);
  if (boxes.delete(b.id)) dead.push(b.id);
}

// What follows something, to the end of its connection.

async function watchTerminal(b) {
  const began = Date.now();
  const [t] = b.terminals;
  if (t === undefined || b.leaving) return;
  try {
    const h = await b.s.process.connectPty(t, { onData: () => {} });
    await h.waitForConnection();
    const connected = Date.now();
    const r = await Promise.race([h.wait(), rest.promise.then((killed) => (connected > killed ? null : h.wait()))]);
    if (r === null) return h.disconnect(); // it follows what goes on
    count(streams, "terminal: exit code " + r.exitCode);
    if (r.exitCode !== undefined && !b.leaving) fail("the terminal", t, "of", b.id, "ended with", r.exitCode, r.error);
  } catch (x) {
    broken("watchTerminal", b, began, x);
  }
}

async function watchLogs(b) {
  const began = Date.now();
  if (b.leaving || !b.watched) return;
  try {
    let connected = 0;
    const on = () => (connected = Date.now());
    const logs = b.s.process.getSessionCommandLogs("watched", b.watched, on, on);
    if ((await Promise.race([logs.then(() => true), rest.promise.then((killed) => (connected > killed ? null : logs))])) === null) return;
    count(streams, "logs: ended");
    if (!b.leaving) unsure.push({ kind: "the end of logs", began, ended: Date.now(), x: "of a command that goes on" });
  } catch (x) {
    count(streams, "logs: " + (x.name ?? x.constructor.name));
    broken("watchLogs", b, began, x instanceof DaytonaError ? x : new DaytonaConnectionError("an event of the socket, as the SDK has it"));
  }
}

async function stop(killed) {
  resting = true;
  rest.resolve(killed);
  await bounded(Promise.all(tasks), "the end of clients").catch((x) => fail(x));
  for (const { kind, began, ended, x, answered } of unsure)
    if (ended < killed || (answered && began > killed)) fail(kind, x, `${ended - killed} ms after the kill, begun ${began - killed} ms after it`);
  unsure = [];
}

// What the server is held to.

async function look() {
  await Promise.all([...boxes.values()].map((b) => bounded(kept(b), "a look").catch((x) => fail("a look threw", x))));
  for (const id of last(dead)) await throws("DaytonaNotFoundError", d.get(id), id, "was deleted");
}

async function throws(kind, promise, ...words) {
  try {
    fail(...words, "and there is", await promise);
  } catch (x) {
    if (x.name !== kind) fail(...words, "and throws", x);
  }
}

async function kept(b) {
  try {
    b.s = await d.get(b.id);
  } catch (x) {
    if (!(x instanceof DaytonaNotFoundError)) throw x;
    if (!b.leaving) fail(b.id, "was created, and is not there:", x);
    boxes.delete(b.id);
    dead.push(b.id);
    return;
  }
  b.leaving = false; // the delete was not begun
  if (b.s.state !== "started") fail(b.id, "is", b.s.state);
  const p = b.s.process;
  await exec(b, "here");
  const paths = last(b.files.keys());
  if (paths.length > 0) {
    const got = await b.s.fs.downloadFiles(paths.map((source) => ({ source })));
    for (const g of got) if (g.error || g.result.toString() !== b.files.get(g.source)) fail(b.id, g.source, "has", g.error ?? g.result.length, "not", b.files.get(g.source)?.length);
    if (got.length !== paths.length) fail(b.id, got.length, "files of", paths.length);
  }
  for (const path of last(b.noFiles)) await throws("DaytonaFileNotFoundError", b.s.fs.getFileDetails(path), b.id, path, "was deleted");
  const there = (await p.listSessions()).map((s) => s.sessionId);
  for (const [s, want] of b.sessions) {
    if (!there.includes(s)) fail(b.id, "the session", s, "is not among", there);
    const r = await p.executeSessionCommand(s, { command: 'echo "$kept"' });
    if (!r.stdout.startsWith(want)) fail(b.id, "the session", s, "has", JSON.stringify(r.stdout), "and had", JSON.stringify(want));
  }
  for (const s of last(b.ended)) await throws("DaytonaNotFoundError", p.getSession(s), b.id, "the session", s, "was deleted");
  for (const c of last(b.commands.keys())) await keptCommand(b, c, ...b.commands.get(c));
  if (b.watched) {
    const { exitCode } = await p.getSessionCommand("watched", b.watched);
    if (exitCode === NEVER_BEGAN) b.watched = undefined;
    else if (exitCode !== undefined) fail(b.id, "the command", b.watched, "goes on, and has the exit code", exitCode);
  }
  const active = (await p.listPtySessions()).filter((t) => t.active).map((t) => t.id);
  for (const t of b.terminals) {
    if (!active.includes(t)) fail(b.id, "the terminal", t, "is not among", active);
    await types(b, t, `again-${++names}`);
  }
}

async function keptCommand(b, c, session, says, code) {
  const p = b.s.process;
  let said = "";
  await p.getSessionCommandLogs(session, c, (x) => (said += x), (x) => (said += x));
  const got = (await p.getSessionCommand(session, c)).exitCode;
  if (said === "" && got === NEVER_BEGAN) count(kinds, "never began");
  else if (said !== says || got !== code) fail(b.id, "the command", c, "gives", JSON.stringify(said), got, "not", JSON.stringify(says), code);
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [say, at] = line.split(" ");
  if (say === "work") await work();
  if (say === "rest") await stop(Number(at));
  if (say === "look") await look();
  console.log("done", say, JSON.stringify([kinds, seen, streams]));
  if (say === "end") break;
}
process.exit(0);

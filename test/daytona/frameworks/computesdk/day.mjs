// A day's work of ComputeSDK with its provider for Daytona.
import { createRequire } from "node:module";
import { check, end, look, rejects } from "../../../checks/checks.mjs";

const { daytona } = createRequire(process.argv[2] + "/")("@computesdk/daytona");

const compute = daytona({});
const s = await compute.sandbox.create({ envs: { X: "1" }, metadata: { of: "computesdk", n: 1 }, name: "compute" });
const id = s.sandboxId;
const info = await s.getInfo();
check("info", [info.id, info.provider, info.status], [id, "daytona", "running"]);
look({ Sandbox: "compute", State: "running" });

// Commands and code.
let r = await s.runCommand("echo out; echo err >&2; exit 3");
check("command", [r.stdout, r.exitCode], ["out\nerr\n", 3]);
r = await s.runCommand("printenv Y; pwd", { cwd: "/tmp", env: { Y: "two words" } });
check("command: variables and directory", [r.stdout, r.exitCode], ["two words\n/tmp\n", 0]);
r = await s.runCommand("python3 - <<'PY'\nimport json\nprint(json.dumps({'n': 6 * 7}))\nPY");
check("command: Python", [r.stdout, r.exitCode], ['{"n": 42}\n', 0]);
check("command: many at once", (await Promise.all([1, 2, 3, 4, 5].map((n) => s.runCommand(`echo ${n}`)))).map((r) => r.stdout), ["1\n", "2\n", "3\n", "4\n", "5\n"]);
r = await s.runCommand("sleep 600", { background: true });
check("command: in the background", r.exitCode, 0);
look({ Sandbox: id, State: "running", Commands: { "pgrep -c -x sleep": "1\n", "echo $X": "1\n" } });

// Files.
const dir = "/home/daytona/work";
await s.filesystem.mkdir(dir + "/sub");
await s.filesystem.writeFile(dir + "/a.txt", "ünï\n'quoted' \"twice\" $X\n");
await s.filesystem.writeFile(dir + "/gone", "x");
check("file: read", await s.filesystem.readFile(dir + "/a.txt"), "ünï\n'quoted' \"twice\" $X\n");
check("file: list", (await s.filesystem.readdir(dir)).map((e) => [e.name, e.type]), [["a.txt", "file"], ["gone", "file"], ["sub", "directory"]]);
await s.filesystem.remove(dir + "/gone");
check("file: exists", [await s.filesystem.exists(dir + "/a.txt"), await s.filesystem.exists(dir + "/gone")], [true, false]);
await rejects("file: none", "Error", () => s.filesystem.readFile(dir + "/none"));
look({ Sandbox: id, State: "running", Files: { [dir + "/a.txt"]: "ünï\n'quoted' \"twice\" $X\n" }, Gone: [dir + "/gone"], Commands: { [`ls ${dir}`]: "a.txt\nsub\n" } });

// A page of the sandbox's.
await s.runCommand(`cd ${dir} && nohup python3 -m http.server 3000 >/dev/null 2>&1 & until curl -s -o /dev/null localhost:3000; do :; done`);
check("port", new URL(await s.getUrl({ port: 3000 })).protocol, "http:");
check("the SDK's own object", (await s.getInstance().getPreviewLink(3000)).token.length > 0, true);

// Snapshots.
await rejects("snapshot: of nothing", "Error", () => compute.snapshot.create(id, { name: "kept" }));
await s.getInstance()._experimental_createSnapshot("kept");
check("snapshot", (await compute.snapshot.list()).items.map((x) => x.name), ["kept"]);
const other = await compute.sandbox.create({ snapshotId: "kept" });
check("snapshot: of it", await other.filesystem.readFile(dir + "/a.txt"), "ünï\n'quoted' \"twice\" $X\n");
await other.destroy();
await compute.snapshot.delete("kept");

// Sandboxes.
check("list", (await compute.sandbox.list()).map((x) => x.sandboxId), [id]);
check("get", (await compute.sandbox.getById(id)).sandboxId, id);
check("get: none", await compute.sandbox.getById("none"), null);
await rejects("create: a name that is taken", "Error", () => compute.sandbox.create({ name: "compute" }));
await rejects("create: a snapshot that is none", "Error", () => compute.sandbox.create({ snapshotId: "none" }));
const bad = await daytona({ apiKey: "none" }).sandbox.create().catch((e) => e.message);
check("create: nobody", bad, "Daytona authentication failed. Please check your DAYTONA_API_KEY environment variable.");
await s.destroy();
look({ Sandbox: id });
await compute.sandbox.destroy(id);
check("destroy: again", await compute.sandbox.getById(id), null);
end();

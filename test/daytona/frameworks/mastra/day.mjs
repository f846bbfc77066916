// A day's work of Mastra's workspaces in a sandbox of Daytona's.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { check, end, look, rejects } from "../../../checks/checks.mjs";

const from = createRequire(process.argv[2] + "/");
const { DaytonaSandbox } = await import(pathToFileURL(from.resolve("@mastra/daytona").replace(/\.cjs$/, ".js")));
const { Workspace, createWorkspaceTools } = await import(pathToFileURL(from.resolve("@mastra/core/workspace").replace(/\.cjs$/, ".js")));

const s = new DaytonaSandbox({ id: "mastra", env: { X: "1" }, labels: { of: "mastra" } });
const w = new Workspace({ sandbox: s });
await w.init();
const id = s.daytona.id;
check("ready", [await s.isReady(), s.status], [true, "running"]);
check("info", (await s.getInfo()).resources, { cpuCores: 1, memoryMB: 1024, diskMB: 3072 });
check("instructions", s.getInstructions().includes("Default working directory: /home/daytona."), true);
look({ Sandbox: "mastra", State: "running" });

// Commands.
let seen = "";
let r = await s.executeCommand("echo out; echo err >&2; exit 3", [], { onStdout: (x) => (seen += x) });
check("command", [r.stdout, r.stderr, r.exitCode, r.success], ["out\n", "err\n", 3, false]);
check("command: streamed", seen, "out\n");
r = await s.executeCommand("printf", ["%s|", "a b", "$X", "c'd"], { cwd: "/tmp" });
check("command: arguments", [r.stdout, r.success], ["a b|$X|c'd|", true]);
r = await s.executeCommand("echo $X-$Y; pwd", [], { cwd: "/tmp", env: { Y: "two words" } });
check("command: variables and directory", r.stdout, "1-two words\n/tmp\n");
r = await s.executeCommand("echo begun; sleep 600", [], { timeout: 2000 });
check("command: timeout", [r.exitCode, r.timedOut, r.stdout], [124, true, "begun\n"]);
const many = await Promise.all([1, 2, 3, 4, 5].map((n) => s.executeCommand(`echo ${n}`)));
check("command: many at once", many.map((r) => r.stdout), ["1\n", "2\n", "3\n", "4\n", "5\n"]);
look({ Sandbox: id, State: "running", Commands: { "pgrep -x sleep; echo none": "none\n" } });

// Processes.
const cat = await s.processes.spawn("read x; echo got $x; read y; echo got $y");
await cat.sendStdin("one\n");
await cat.sendStdin("two\n");
r = await cat.wait();
check("process: input", [r.stdout, r.exitCode], ["got one\ngot two\n", 0]);
const sleeper = await s.processes.spawn("sleep 600");
look({ Sandbox: id, State: "running", Commands: { "pgrep -c -x sleep": "1\n" } });
check("process: kill", [await sleeper.kill(), (await sleeper.wait()).killed], [true, true]);
check("process: list", (await s.processes.list()).filter((p) => p.running), []);
look({ Sandbox: id, State: "running", Commands: { "pgrep -x sleep; echo none": "none\n" } });

// What an agent is given: its tools.
const tools = await createWorkspaceTools(w);
const run = tools.mastra_workspace_execute_command;
check("tool", typeof run?.execute, "function");
const said = await run.execute({ command: "mkdir -p work && echo -n written > work/a.txt && cat work/a.txt" }, { workspace: w });
check("tool: a command", String(said).includes("written"), true);
look({ Sandbox: id, State: "running", Files: { "/home/daytona/work/a.txt": "written" } });

// Files, by the SDK's own object.
await s.daytona.fs.uploadFile(Buffer.from("by the SDK\n"), "work/b.txt");
check("file", (await s.daytona.fs.downloadFile("work/b.txt")).toString(), "by the SDK\n");
check("file: list", (await s.daytona.fs.listFiles("work")).map((f) => f.name).sort(), ["a.txt", "b.txt"]);
await rejects("file: none", "DaytonaError", () => s.daytona.fs.downloadFile("work/none"));

// It stops, and is found again by its name; one that somebody deleted is made anew under a command.
await s.stop();
look({ Sandbox: id, State: "stopped" });
const again = new DaytonaSandbox({ id: "mastra" });
await again.start();
check("found again", again.daytona.id, id);
r = await again.executeCommand("cat", ["work/a.txt"]);
check("found again: its files", r.stdout, "written");
look({ Sandbox: id, State: "running", Files: { "/home/daytona/work/b.txt": "by the SDK\n" } });
await again.daytona.delete();
look({ Sandbox: id });
r = await again.executeCommand("echo anew");
check("made anew", [r.stdout, again.daytona.id !== id], ["anew\n", true]);
const second = again.daytona.id;
look({ Sandbox: second, State: "running" });
await again.destroy();
look({ Sandbox: second });
end();

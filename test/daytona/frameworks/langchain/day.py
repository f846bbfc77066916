# A day's work of LangChain's backend for Daytona: what its deep agents do with files and commands.
import asyncio

from daytona import CreateSandboxFromSnapshotParams, Daytona
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_daytona import DaytonaSandbox

from checks import check, end, look

d = Daytona()
s = d.create(CreateSandboxFromSnapshotParams(labels={"of": "langchain"}, env_vars={"X": "1"}))
b = DaytonaSandbox(sandbox=s)
check("id", b.id, s.id)

# Commands and code.
r = b.execute("echo out; echo err >&2; cd /tmp; pwd; exit 3")
check("execute", (r.output, r.exit_code, r.truncated), ("out\n/tmp\n\n<stderr>err</stderr>", 3, False))
r = b.execute("python3 -c 'import os; print(6 * 7, os.environ[\"X\"])'")
check("execute: code", (r.output, r.exit_code), ("42 1\n", 0))
r = b.execute("seq 100000")
check("execute: much", (len(r.output), r.exit_code), (588895, 0))
r = b.execute("echo begun; sleep 600", timeout=4)
check("execute: timeout", (r.exit_code, r.output), (124, "Command timed out after 4 seconds\nbegun\n"))
check("execute: at once", asyncio.run(b.aexecute("echo async")).output, "async\n")
check("no session is left", [x.session_id for x in s.process.list_sessions()], [])
look(Sandbox=s.id, State="running", Commands={"pgrep -x sleep; echo none": "none\n", "echo $X": "1\n"})

# Files.
home = "/home/daytona/work"
check("write", b.write(home + "/a.txt", "one\ntwo\nthree\n").error, None)
check("write: over", (b.write(home + "/b.py", "x = 1\n").error, b.write(home + "/b.py", "x = 2\ny = x\n").error), (None, None))
r = b.read(home + "/a.txt", offset=1, limit=1)
check("read", (r.file_data["content"], r.total_lines, r.next_offset), ("two", 3, 2))
check("edit", (b.edit(home + "/b.py", "x", "z", replace_all=True).occurrences, b.edit(home + "/b.py", "nowhere", "z").error is None), (2, False))
check("upload", [u.error for u in b.upload_files([(home + "/bytes", bytes(range(256))), ("relative", b"x")])], [None, "invalid_path"])
got = b.download_files([home + "/bytes", home + "/none", home + "/a.txt"])
check("download", [(g.content, g.error) for g in got], [(bytes(range(256)), None), (None, "file_not_found"), (b"one\ntwo\nthree\n", None)])
check("ls", sorted(e["path"] for e in b.ls(home).entries), [home + "/a.txt", home + "/b.py", home + "/bytes"])
check("glob", [m["path"] for m in b.glob("*.py", home).matches], [home + "/b.py"])
check("grep", [(m["path"], m["line"], m["text"]) for m in b.grep("y = z", home).matches], [(home + "/b.py", 2, "y = z")])
check("read what is not there", "not" in b.read(home + "/none").error, True)
check("delete", (b.delete(home + "/bytes").error, b.delete(home + "/none").error is None), (None, False))
look(
    Sandbox=s.id, State="running", Files={home + "/a.txt": "one\ntwo\nthree\n", home + "/b.py": "z = 2\ny = z\n"}, Gone=[home + "/bytes"],
    Commands={"stat -c %U " + home + "/a.txt": "daytona\n"},
)


# An agent, whose model says what it would call.
class Said(FakeMessagesListChatModel):
    def bind_tools(self, tools, **_):
        return self


def call(n, tool, **args):
    return AIMessage(content="", tool_calls=[{"id": str(n), "name": tool, "args": args}])


agent = create_deep_agent(model=Said(responses=[
    call(1, "write_file", file_path=home + "/sum.py", content="print(sum(range(10)))\n"),
    call(2, "execute", command="python3 " + home + "/sum.py"),
    call(3, "execute", command="exit 7"),
    call(4, "read_file", file_path=home + "/sum.py"),
    AIMessage(content="done"),
]), backend=b)
answers = [m.content for m in agent.invoke({"messages": [("user", "Sum it up.")]})["messages"] if m.type == "tool"]
check("agent: what its tools say", [w in a for w, a in zip(["sum.py", "45\n", "exit code 7", "print(sum(range(10)))"], answers)], [True] * 4)
look(Sandbox=s.id, State="running", Files={home + "/sum.py": "print(sum(range(10)))\n"})

d.delete(s)
look(Sandbox=s.id)
end()

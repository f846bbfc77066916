// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// told is what programs inside are told of the machine: it is the sandbox's limits.
func told(t *testing.T, s *suite) {
	s.need(t, runtime.Isolation)
	s.need(t, runtime.LimitCPU)
	s.need(t, runtime.LimitMemory)
	s.need(t, runtime.Resize)
	spec := s.spec()
	spec.Limits.CPU, spec.Limits.MemoryMB = 1, 512
	b := s.create(t, spec)
	memory := func(field string) int {
		t.Helper()
		n, err := strconv.Atoi(b.ok("sed -n 's/^" + field + ": *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo"))
		if err != nil {
			t.Fatalf("%s in /proc/meminfo: %v", field, err)
		}
		return n
	}
	t.Run("Limits", func(t *testing.T) {
		for _, row := range []struct{ shell, want string }{
			{"free -m | awk '/^Mem:/ {print $2}'", "512"},
			{"python3 -c 'import os; print(os.cpu_count())'", "1"},
			{"getconf _NPROCESSORS_ONLN", "1"},
			{"cat /sys/devices/system/cpu/online", "0"},
			{"cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max", "100000 100000\n536870912"},
			{"nproc", "1"},
			{"python3 -c 'import os; print(len(os.sched_getaffinity(0)), len(os.sched_getaffinity(1)))'", "1 1"},
			{"python3 -c 'import os; print(os.sysconf(\"SC_PHYS_PAGES\") * os.sysconf(\"SC_PAGESIZE\") >> 20)'", "512"},
			{"python3 -c 'import multiprocessing, concurrent.futures as f; print(multiprocessing.cpu_count())'", "1"},
			{"if command -v node >/dev/null; then node -p 'const os = require(\"os\"); [os.totalmem() >> 20, os.cpus().length, os.availableParallelism()].join()'; else echo 512,1,1; fi", "512,1,1"},
			{"grep -c '^cpu[0-9]' /proc/stat", "1"},
			{"awk '/^Swap(Total|Free)/ {print $2}' /proc/meminfo", "0\n0"},
		} {
			if got := b.ok(row.shell); got != row.want {
				t.Errorf("%s: %q, want %q", row.shell, got, row.want)
			}
		}
		if o := b.asRoot("nproc"); o.Stdout != "1\n" {
			t.Errorf("root has %q processors", o.Stdout)
		}
		// What is a limit of memory for each processor that there may be is none of processors.
		b.ok(`python3 -c '
last = lambda s: int(s.strip().split("-")[-1].split(",")[-1])
at = "/sys/devices/system/cpu/"
allowed = [l.split()[1] for l in open("/proc/self/status") if l.startswith("Cpus_allowed_list")][0]
assert open(at + "possible").read() == open(at + "present").read()
assert last(open(at + "possible").read()) >= last(allowed)'`)
		b.ok("df / && top -bn1 >/dev/null && uptime && ps -eo etime,lstart && vmstat >/dev/null")
	})
	t.Run("Use", func(t *testing.T) {
		before := memory("MemAvailable")
		if before > 512<<10 || before < 400<<10 {
			t.Errorf("%d kB of 512 MiB are available", before)
		}
		b.begin(holds("150"), "begun\n")
		b.ok("for i in $(seq 100); do [ $(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo) -lt " + strconv.Itoa(before-100<<10) + " ] && exit 0; sleep 0.1; done; exit 1")
		// Neither the one minute's load nor the ticks are the host's, which is up for longer.
		b.ok("python3 -c 'import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass'")
		b.ok("for i in $(seq 100); do read load rest </proc/loadavg; read cpu user nice system rest </proc/stat; [ $load != 0.00 ] && [ $((user + system)) -gt 100 ] && exit 0; sleep 0.1; done; cat /proc/loadavg /proc/stat; exit 1")
	})
	t.Run("Go", func(t *testing.T) {
		if got := b.ok(goProgram(t, b, goLimits)); got != "1 1" {
			t.Errorf("runtime.NumCPU and GOMAXPROCS are %s, want 1 1", got)
		}
	})
	t.Run("LoadIsTheSandboxs", func(t *testing.T) {
		b.ok(`python3 -c '
import os
file = [float(x) for x in open("/proc/loadavg").read().split()[:3]]
assert all(abs(a - b) < 0.2 for a, b in zip(os.getloadavg(), file)), (os.getloadavg(), file)'`)
	})
	t.Run("CallsThatMakeNoSense", func(t *testing.T) { b.ok("exec python3 -c '" + oddCalls + "'") })
	t.Run("CallsWithoutEnd", func(t *testing.T) {
		p := b.begin(agent.Command{Shell: "exec python3 -u -c '" + endlessCalls + "'"}, "begun\n")
		for range 3 {
			if got := b.ok("nproc"); got != "1" {
				t.Errorf("beside them there are %s processors", got)
			}
			if s.has(t, runtime.Pause) {
				b.pause()
				b.resume()
			}
		}
		if err := b.agent.Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("nproc"); got != "1" {
			t.Errorf("after them there are %s processors", got)
		}
	})
	t.Run("AreWrittenByNobodyInside", func(t *testing.T) {
		for _, path := range []string{"/proc/meminfo", "/proc/stat", "/proc/loadavg", "/sys/devices/system/cpu/online", "/sys/fs/proc/meminfo", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"} {
			if o := b.asRoot("echo 1 > " + path); !strings.Contains(o.Stderr, "Read-only file system") {
				t.Errorf("root writes %s: %q", path, o.Stderr)
			}
			if o := b.asRoot("chmod 666 " + path); !strings.Contains(o.Stderr, "Read-only file system") {
				t.Errorf("root opens %s to all: %q", path, o.Stderr)
			}
		}
	})
	t.Run("NoGroupIsThere", func(t *testing.T) {
		if got := b.ok("ls -A /sys/fs/cgroup | tr '\\n' ' '; stat -f -c %T /sys/fs/cgroup; grep -c ' - cgroup' /proc/self/mountinfo || :"); got != "cpu.max memory.current memory.max tmpfs\n0" {
			t.Errorf("in /sys/fs/cgroup is %q", got)
		}
		for _, shell := range []string{"mkdir /sys/fs/cgroup/mine", "echo $$ > /sys/fs/cgroup/cgroup.procs", "ln -s /proc /sys/fs/cgroup/cpu", "rm /sys/fs/cgroup/cpu.max", "mv /sys/fs/cgroup /sys/fs/other"} {
			if o := b.asRoot(shell); !strings.Contains(o.Stderr, "Read-only file system") {
				t.Errorf("%s: %q", shell, o.Stderr)
			}
		}
	})
	t.Run("Processes", func(t *testing.T) {
		// Process 1 has to be there. It is all of ours that is.
		if got := b.ok("ps -eo pid=,user= | awk '$1 == 1 || $2 != \"sandbox\"' | tr -s ' '; ps --no-headers -eL -o pid= | awk '$1 == 1' | sort -u | wc -l"); strings.TrimSpace(got) != "1 root\n1" {
			t.Errorf("ps shows %q besides the command's", got)
		}
		if got := b.ok("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 /proc/net/unix | grep -vc '\\(local_address\\|RefCount\\)' || :"); got != "0" {
			t.Errorf("%s sockets are there that no command made", got)
		}
		if ports, _, err := b.agent.Ports(t.Context()); err != nil || len(ports) != 0 {
			t.Errorf("ports that no command listens on: %+v, %v", ports, err)
		}
	})
	t.Run("FollowTheLimits", func(t *testing.T) {
		l := spec.Limits
		l.MemoryMB, l.CPU = 1024, 2
		if err := b.resize(l); err != nil {
			t.Fatal(err)
		}
		b.ok("for i in $(seq 100); do grep -q '^MemTotal: *1048576 kB$' /proc/meminfo && exit 0; sleep 0.1; done; exit 1")
		most := b.ok("python3 -c 'for l in open(\"/proc/self/status\"):\n  if l.startswith(\"Cpus_allowed:\"): print(min(2, int(l.split()[1].replace(\",\", \"\"), 16).bit_count()))'")
		if got := b.ok("nproc; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max"); got != most+"\n200000 100000\n1073741824" {
			t.Errorf("with 2 CPU and 1 GiB they say %q", got)
		}
	})
}

const goLimits = `package main

import "runtime"

func main() { println(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }
`

// goProgram puts a program into the box, and returns the command that runs it.
func goProgram(t *testing.T, b *box, text string) (shell string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, _, err := b.agent.WriteFile(t.Context(), "/workspace/program", f, sandbox.WriteFileOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	return "/workspace/program 2>&1"
}

// oddCalls are those that the agent answers, with arguments that the kernel refuses or that are
// meant to have it write where the caller may not.
const oddCalls = `
import ctypes, errno, mmap, os, signal
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
GET, INFO, SECCOMP = (123, 179, 277) if arm else (204, 99, 317)
def call(nr, *a):
    n = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(x) for x in a])
    return n if n >= 0 else errno.errorcode[ctypes.get_errno()]
def want(what, got, *one):
    assert got in one, "%s: %s, want %s" % (what, got, one)
buf = ctypes.create_string_buffer(4096)
at = ctypes.addressof(buf)
for bad in (0, 8, -1, -4096, 1 << 63, 0xffff888000000000, 0x7ffffffff000):
    want("sysinfo at %x" % bad, call(INFO, bad if bad < 1 << 63 else bad - (1 << 64)), "EFAULT")
    want("affinity at %x" % bad, call(GET, 0, 128, bad if bad < 1 << 63 else bad - (1 << 64)), "EFAULT")
for size in (0, 1, 7, 9, 4095, -1):
    want("a set of %d bytes" % size, call(GET, 0, size, at), "EINVAL")
want("a large set", call(GET, 0, 4096, at), *range(8, 129, 8))
want("an odd size of 64 bits", call(GET, 0, (1 << 32) + 8, at), 8)
for pid in (-1, -5, 4194303, 2 ** 31 - 1, -2 ** 31): want("process %d" % pid, call(GET, pid, 128, at), "ESRCH", "EINVAL")
want("another process", call(GET, os.getppid(), 128, at), *range(8, 129, 8))
m = mmap.mmap(-1, 8192)
edge = ctypes.addressof(ctypes.c_char.from_buffer(m)) + 4096
libc.mprotect(ctypes.c_void_p(edge), 4096, 0)
want("half of it is not writable", call(INFO, edge - 50), "EFAULT")
# A file that may only be read stays as it is, however it is mapped.
libc.mmap.restype = ctypes.c_void_p
f = os.open("/etc/passwd", os.O_RDONLY)
before = open("/etc/passwd", "rb").read()
for shared in (1, 2):
    p = libc.mmap(None, ctypes.c_size_t(4096), 1, shared, f, ctypes.c_long(0))
    got = call(INFO, p)
    want("a mapping of a file, %d" % shared, got, "EFAULT", *([] if shared == 1 else [0]))
    assert open("/etc/passwd", "rb").read() == before
# Nobody inside can take the calls over, nor answer them in place of the agent.
allow = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f", 8)
class Program(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(1, ctypes.addressof(allow))
want("a listener", call(SECCOMP, 1, 8, ctypes.addressof(program)), "EBUSY")
want("a filter", call(SECCOMP, 1, 0, ctypes.addressof(program)), 0)
assert len(os.sched_getaffinity(0)) == 1
# Who binds itself is told so.
mine = list(os.sched_getaffinity(0))
os.sched_setaffinity(0, mine[:1])
assert list(os.sched_getaffinity(0)) == mine[:1]
# Who asks is killed and interrupted while it waits.
for n in range(20):
    pid = os.fork()
    if pid == 0:
        while True: os.sched_getaffinity(0); call(INFO, at)
    os.kill(pid, signal.SIGSTOP); os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for n in range(500):
    try: assert len(os.sched_getaffinity(0)) == 1
    except InterruptedError: pass # as any call that waits
signal.setitimer(signal.ITIMER_REAL, 0)
`

// endlessCalls makes calls that the agent answers, from many processes.
const endlessCalls = `
import os
for n in range(16):
    if os.fork() == 0:
        while True: os.sched_getaffinity(0); os.sysconf("SC_PHYS_PAGES")
print("begun")
os.wait()
`

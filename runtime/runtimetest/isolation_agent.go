// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// throughAgent makes the agent itself do what a command may not: it opens files
// and starts programs for whoever asks, and has rights and descriptors that no
// command has. What /proc calls "self" is then the agent.
func throughAgent(t *testing.T, s *suite, host facts) {
	b := s.create(t, s.spec())
	facts := withBox(t, s, b, host)
	users := []string{"sandbox"}
	if facts["root_pid"] != 0 {
		users = append(users, "root")
	}
	b.ok("ln -s /proc/self/mem /workspace/mem; ln -s /proc/self/fd /workspace/fd; ln -s /proc/self/exe /workspace/exe; ln -s /proc/1/root /workspace/root; ln -s /proc/self/cwd /tmp/cwd; " +
		"printf '#!/proc/self/exe\\n' > /workspace/script; chmod 755 /workspace/script; ln -s / /workspace/slash; mkfifo /workspace/fifo; echo mine > /workspace/mine")

	inner := []string{
		"/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/exe", "/proc/self/environ", "/proc/self/mem", "/proc/self/maps",
		"/proc/self/exe", "/proc/thread-self/mem", "/proc/self/task/1/mem", "/workspace/mem", "/proc/sys/kernel/core_pattern",
		"/workspace/slash/proc/self/mem", "/proc/self/root/proc/self/mem", "/proc/1/root/etc/passwd", "/proc/self/root/etc/passwd",
		"/workspace/root/etc/passwd", "/proc/self/cwd/etc/passwd", "/tmp/cwd/etc/passwd", "/proc/kcore", "/dev/null", "/dev/zero", "/dev/urandom", "/workspace/fifo",
		host["secret"].(string), "/proc/1/root" + host["secret"].(string), "../../../../../../.." + host["secret"].(string), "/dev/pts/ptmx",
	}
	var descriptors []string
	for n := range 48 {
		descriptors = append(descriptors, fmt.Sprintf("/proc/self/fd/%d", n), fmt.Sprintf("/proc/1/fd/%d", n), fmt.Sprintf("/workspace/fd/%d", n))
	}
	// What may come of it: no right, no such thing, or no kind of file for it.
	refused := func(t *testing.T, what string, err error) {
		t.Helper()
		if !slices.Contains([]fault.Code{fault.Denied, fault.NotFound, fault.Invalid}, fault.Of(err)) {
			t.Errorf("%s: got %v (code %q), want it denied, not found or invalid", what, err, fault.Of(err))
		}
	}
	for _, user := range users {
		t.Run(user, func(t *testing.T) {
			ctx := t.Context()
			read := func(path string) error {
				_, r, err := b.agent.ReadFile(ctx, path, sandbox.ReadFileOptions{User: user, Length: 64})
				if err != nil {
					return err
				}
				defer func() { _ = r.Close() }()
				got, err := io.ReadAll(r)
				if err == nil && len(got) == 0 {
					return fault.New(fault.NotFound, "empty")
				}
				return err
			}
			t.Run("TheControlsWork", func(t *testing.T) {
				if err := read("/workspace/mine"); err != nil {
					t.Error(err)
				}
				if err := read("/workspace/slash/etc/passwd"); err != nil {
					t.Error(err)
				}
				if _, _, err := b.agent.WriteFile(ctx, "/workspace/new", strings.NewReader("x"), sandbox.WriteFileOptions{User: user}); err != nil {
					t.Error(err)
				}
			})
			t.Run("ReadTheAgentsOwnFiles", func(t *testing.T) {
				for _, path := range slices.Concat(inner, descriptors) {
					refused(t, "read "+path, read(path))
				}
			})
			t.Run("WriteTheAgentsOwnFiles", func(t *testing.T) {
				for _, path := range slices.Concat(inner, descriptors[:24], []string{"/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/sys/x", "/dev/x", "/proc/x"}) {
					if strings.HasPrefix(path, "..") || path == "/workspace/fifo" || strings.HasPrefix(path, host["dir"].(string)) {
						continue // names of one's own, once they are made
					}
					_, _, err := b.agent.WriteFile(ctx, path, strings.NewReader("x"), sandbox.WriteFileOptions{User: user, Size: 1})
					refused(t, "write "+path, err)
				}
			})
			t.Run("ListAndChangeDirectoriesThatTheAgentHasOpen", func(t *testing.T) {
				for _, path := range slices.Concat(descriptors, []string{"/proc/1/root", "/proc/1/cwd", "/proc/1/fd", "/proc/self/root", "/proc/self/cwd", "/workspace/root", "/proc/1/map_files"}) {
					_, _, err := b.agent.List(ctx, path, sandbox.ListFilesOptions{User: user})
					refused(t, "list "+path, err)
					refused(t, "mkdir below "+path, b.agent.Mkdir(ctx, path+"/new", sandbox.MakeDirOptions{User: user, Parents: true}))
					refused(t, "move below "+path, b.agent.Move(ctx, "/workspace/mine", path+"/mine", sandbox.MoveFileOptions{User: user, Overwrite: true}))
					refused(t, "remove below "+path, b.agent.Remove(ctx, path+"/etc", sandbox.RemoveFileOptions{User: user, Recursive: true}))
				}
			})
			t.Run("StartCommandsInDirectoriesThatTheAgentHasOpen", func(t *testing.T) {
				for _, path := range slices.Concat(descriptors, []string{"/proc/1/root", "/proc/1/cwd", "/proc/self/fd/3/..", "/proc/thread-self/fd/6", "/workspace/root"}) {
					o, err := b.tryExec(ctx, agent.Command{Argv: []string{"ls", "-la", "."}, Cwd: path, User: user})
					if err == nil && o.ExitCode == 0 {
						t.Errorf("a command ran in %s: %q", path, o.Stdout)
					} else if err != nil {
						refused(t, "run in "+path, err)
					}
				}
			})
			t.Run("StartTheAgentsOwnProgramOrDescriptors", func(t *testing.T) {
				for _, path := range append([]string{"/proc/1/exe"}, descriptors[:96]...) {
					o, err := b.tryExec(ctx, agent.Command{ID: sandbox.NewProcessID(), Argv: []string{path}, User: user})
					if err == nil && o.ExitCode != 126 && o.ExitCode != 127 {
						t.Errorf("%s was run: %+v", path, o)
					}
				}
			})
			t.Run("UseTheAgentsProgramAsOnesOwn", func(t *testing.T) { ownProgram(t, b, user) })
		})
	}
	// What only the user may not.
	t.Run("ReadAndWriteWhatOnlyRootMay", func(t *testing.T) {
		if len(users) < 2 {
			t.Skip("there is no root in this sandbox")
		}
		b.ok("ln -s /root/secret /workspace/secret; ln -s /usr/local/owned /workspace/owned")
		for _, path := range []string{"/root/secret", "/workspace/secret", "/etc/shadow", "/workspace/slash/root/secret"} {
			_, _, err := b.agent.ReadFile(t.Context(), path, sandbox.ReadFileOptions{})
			wantCode(t, "read "+path, err, fault.Denied)
		}
		for _, path := range []string{"/usr/local/owned", "/workspace/owned", "/workspace/slash/usr/local/owned", "/etc/new", "/workspace/theirs/file", "/workspace/theirs/new", "/root/new"} {
			_, _, err := b.agent.WriteFile(t.Context(), path, strings.NewReader("x"), sandbox.WriteFileOptions{})
			wantCode(t, "write "+path, err, fault.Denied)
		}
	})
	b.ok("echo the sandbox still works")
}

// ownProgram starts the agent's program as a command: before a command has executed its
// program, what /proc calls its own is the agent's. That becomes a process of the command's user like any
// other and ends at once, since it is not process 1. Its file can be neither read nor written.
func ownProgram(t *testing.T, b *box, user string) {
	ctx := t.Context()
	hunter, err := b.agent.Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"python3", "-I", "-c", huntProgram}, User: user, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hunter.Close() }()
	if f, err := hunter.Next(ctx); err != nil || string(f.Data) != "ready\n" {
		t.Fatalf("the process that waits for the program: %q, %v", f.Data, err)
	}
	over := make(chan outcome, 1)
	go func() {
		o, err := collect(ctx, hunter)
		if err != nil {
			o.Stderr += err.Error()
		}
		over <- o
	}()
	for tries := 0; ; tries++ {
		for _, path := range []string{"/proc/self/exe", "/proc/thread-self/exe", "/workspace/exe", "/workspace/script"} {
			o, err := b.tryExec(ctx, agent.Command{Argv: []string{path}, User: user})
			if err != nil || o.ExitCode != 1 || o.Stdout+o.Stderr != "" {
				t.Errorf("%s: got %+v, %v; want it to end by itself with exit code 1", path, o, err)
			}
		}
		select {
		case o := <-over:
			if o.ExitCode != 0 || o.Stdout != "NOTHING\n" {
				t.Errorf("of the agent's program that was started as a command: %+v, want NOTHING", o)
			}
			t.Logf("stopped after %d tries", tries)
			return
		default:
		}
	}
}

// huntProgram stops such a process, tries on it what a debugger does, and prints what it got. One that was ending
// already when it was stopped is none to try: it looks for the next.
const huntProgram = `
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
print('ready', flush=True)
def stopped():
    while True:
        for p in os.listdir('/proc'):
            if not p.isdigit() or p in ('1', str(os.getpid())): continue
            try:
                if open('/proc/%s/comm' % p).read().strip() not in ('exe', 'script'): continue
                os.kill(int(p), signal.SIGSTOP)
                if open('/proc/%s/stat' % p).read().rsplit(')', 1)[1].split()[0] != 'Z': return int(p)
            except OSError: pass
def tried(pid):
    got = []
    for name, flags in ('exe', os.O_RDONLY), ('exe', os.O_WRONLY), ('exe', os.O_RDWR), ('mem', os.O_RDONLY), ('mem', os.O_RDWR), ('maps', os.O_RDONLY):
        try:
            os.read(os.open('/proc/%d/%s' % (pid, name), flags), 1)
            got.append('%s by %d' % (name, flags))
        except OSError: pass
    try: got.append(os.listdir('/proc/%d/fd' % pid))
    except OSError: pass
    for request in 16, 0x4206:
        if libc.ptrace(request, pid, 0, 0) == 0: got.append('ptrace %d' % request)
    try: os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        if not got: raise
    return got
while True:
    try: got = tried(stopped())
    except ProcessLookupError: continue
    print(got or 'NOTHING')
    break
`

// swaps changes what a name is, all the time: a directory, and a link to each
// descriptor that the agent may have open.
const swaps = `
os.makedirs('/workspace/race', exist_ok=True)
os.chdir('/workspace/race')
os.makedirs('dir'); open('dir/MINE', 'w').close(); os.chmod('dir', 0o777)
def swap():
    n = 3
    while True:
        n = n + 1 if n < 24 else 3
        os.symlink('/proc/self/fd/%d' % n, 'link')
        for _ in range(41): libc.renameat2(AT, b'dir', AT, b'link', 2) # exchange, an odd number of times
        for _ in range(41): libc.renameat2(AT, b'dir', AT, b'link', 2)
        os.unlink('link')
if os.fork() == 0: swap()
`

// agentRaces names a directory that turns into a way to the agent's descriptors
// between the agent's look at it and its use.
func agentRaces(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	users := []string{"sandbox"}
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reason, known := caps[runtime.RootUser]; known && reason == nil {
		users = append(users, "root")
	}
	b.holds(t, swaps, "sandbox")
	ctx := t.Context()
	const rounds = 250
	for _, user := range users {
		t.Run(user+"/StartACommandInADirectoryThatTurnsIntoALink", func(t *testing.T) {
			ran := 0
			for range rounds {
				o, err := b.tryExec(ctx, agent.Command{Argv: []string{"ls", "-a"}, Cwd: "/workspace/race/dir", User: user})
				if err != nil || o.ExitCode != 0 {
					continue // the link was seen, and refused
				}
				ran++
				if !strings.Contains(o.Stdout, "MINE") {
					t.Fatalf("a command got out of its directory, and lists %q", o.Stdout)
				}
			}
			t.Logf("%d of %d commands ran", ran, rounds)
		})
		t.Run(user+"/FilesBelowADirectoryThatTurnsIntoALink", func(t *testing.T) {
			for range rounds {
				list, _, err := b.agent.List(ctx, "/workspace/race/dir", sandbox.ListFilesOptions{User: user})
				if err == nil && !slices.ContainsFunc(list, func(f sandbox.FileInfo) bool { return f.Name == "MINE" }) {
					t.Fatalf("a list got out of its directory: %v", list)
				}
				_, _, err = b.agent.WriteFile(ctx, "/workspace/race/dir/written", strings.NewReader("x"), sandbox.WriteFileOptions{User: user, Size: 1})
				if err != nil && !slices.Contains([]fault.Code{fault.Denied, fault.NotFound, fault.Invalid}, fault.Of(err)) {
					t.Fatalf("write: %v", err)
				}
				_ = b.agent.Mkdir(ctx, "/workspace/race/dir/made", sandbox.MakeDirOptions{User: user, Parents: true})
				_ = b.agent.Remove(ctx, "/workspace/race/dir/made", sandbox.RemoveFileOptions{User: user, Recursive: true})
			}
		})
	}
	b.ok("echo the sandbox still works")
}

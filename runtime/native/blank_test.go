// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// prepared is a driver that keeps n blanks.
func prepared(t testing.TB, dir string, n int) *native.Driver {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	d, err := native.Open(context.Background(), native.Options{Dir: dir, Agent: program, Blanks: n})
	if err != nil {
		t.Fatalf("native.Open: %v", err)
	}
	return d
}

// blankID waits until a blank is ready.
func blankID(t testing.TB, d *native.Driver) sandbox.ID {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if id, ok := d.Prepared(runtime.Spec{}); ok {
			return id
		}
		if time.Now().After(deadline) {
			t.Fatal("no blank was made")
		}
		<-time.After(5 * time.Millisecond) // nobody is told of a blank
	}
}

func specOf(id sandbox.ID, root string) runtime.Spec {
	return runtime.Spec{
		ID: id, Image: runtime.Image{Root: root}, Hostname: string(id),
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64},
	}
}

// output runs a command in a sandbox, as its user.
func output(t testing.TB, i runtime.Instance, argv ...string) string {
	t.Helper()
	p, err := agent.NewClient(i.Dial).Start(context.Background(), agent.Command{ID: sandbox.NewProcessID(), Argv: argv, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("start %q: %v", argv, err)
	}
	defer func() { _ = p.Close() }()
	var out bytes.Buffer
	for {
		f, err := p.Next(context.Background())
		if err != nil {
			break
		}
		out.Write(f.Data)
	}
	return strings.TrimSpace(out.String())
}

// groupsOf gives the cgroups of a driver's directory by the id that they are named by.
func groupsOf(t testing.TB, dir string) map[string]bool {
	t.Helper()
	now, err := leaktest.Take(leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for name := range now[leaktest.Cgroups] {
		if id := filepath.Base(name); sandbox.ValidID(id) {
			ids[id] = true
		}
	}
	return ids
}

func TestASandboxGoesOnFromABlank(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	d := prepared(t, dir, 1)
	id := blankID(t, d)
	if handles, err := d.List(t.Context()); err != nil || len(handles) != 0 {
		t.Errorf("a blank is listed: %v, %v", handles, err)
	}
	pid, pids := blankProcess(t, dir, id)
	t.Logf("a blank: %s, %d threads", pids, threads(t, pid))
	i, err := d.Create(t.Context(), specOf(id, root))
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := blankProcess(t, dir, id); now != pid {
		t.Errorf("process 1 is %d, and was %d as a blank", now, pid)
	}
	if got := output(t, i, "/bin/sh", "-c", "hostname; id -u; nproc; touch /workspace/a && echo ok"); got != string(id)+"\n1000\n1\nok" && got != string(id)+"\n1000\n2\nok" {
		t.Errorf("inside: %q", got)
	}
	// The limits are those of the request.
	if got := output(t, i, "python3", "-c", "x = bytearray(400 << 20); print('unlimited')"); strings.Contains(got, "unlimited") {
		t.Error("the memory limit does not hold")
	}
	if handles, err := d.List(t.Context()); err != nil || len(handles) != 1 {
		t.Errorf("listed: %v, %v", handles, err)
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), specOf(id, root)); err != nil {
		t.Fatalf("a second life: %v", err)
	}
	if got := output(t, i, "ls", "/workspace"); got != "a" {
		t.Errorf("its disk: %q", got)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// A blank that is dead, or that nobody knows, costs a create nothing but time.
func TestACreateNeedsNoBlank(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	d := prepared(t, dir, 2)
	dead := blankID(t, d)
	pid, _ := blankProcess(t, dir, dead)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for { // a create that takes it while it dies has a sandbox that dies
		if s, err := leaktest.ReadStat(pid); err != nil || s.Dead {
			break
		}
	}
	unused := blankID(t, d)
	for _, id := range []sandbox.ID{dead, sandbox.NewID()} {
		i, err := d.Create(t.Context(), specOf(id, root))
		if err != nil {
			t.Fatalf("a create without a blank: %v", err)
		}
		if got := output(t, i, "echo", "hello"); got != "hello" {
			t.Errorf("inside: %q", got)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !groupsOf(t, dir)[string(unused)] {
		t.Error("a blank that was not asked for is gone")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// Whoever comes with the id of a blank late, while that is being taken back, gets a sandbox
// all the same, and what is taken back is not its.
func TestAnIDThatIsBeingForgottenIsGood(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	d := prepared(t, dir, 5)
	for range 5 { // each is another blank: no claim asks for more
		id := blankID(t, d)
		forgotten := make(chan struct{})
		go func() {
			defer close(forgotten)
			d.Forget()
		}()
		for d.Lent(id) { // it is being taken back then, or was
			goruntime.Gosched()
		}
		if handles, err := d.List(t.Context()); err != nil || len(handles) != 0 {
			t.Errorf("what is being taken back is listed: %v, %v", handles, err)
		}
		i, err := d.Create(t.Context(), specOf(id, root))
		if err != nil {
			t.Fatal(err)
		}
		<-forgotten
		if got := output(t, i, "echo", "hello"); got != "hello" {
			t.Errorf("inside: %q", got)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// What is wrong with a blank is never the caller's.
func TestABlankThatCannotBeginIsReplaced(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	d := prepared(t, dir, 1)
	id := blankID(t, d)
	// Its group is gone: the limits cannot be set, after its disk was made.
	pid, _ := blankProcess(t, dir, id)
	for name := range mustTake(t, dir)[leaktest.Cgroups] {
		if filepath.Base(name) == string(id) && !strings.Contains(name, "/unified/") {
			_ = os.Remove(name)
		}
	}
	i, err := d.Create(t.Context(), specOf(id, root))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if now, _ := blankProcess(t, dir, id); now == pid {
		t.Skip("this host has no group that can be taken away from a blank")
	}
	if got := output(t, i, "echo", "hello"); got != "hello" {
		t.Errorf("inside: %q", got)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// The blanks of a server that is killed die with it, and the next one frees what they
// leave; the sandbox that began as one goes on.
func TestBlanksDieWithTheirServer(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	dir, path := trueDir(t), filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), crashPoint+"="+crashBlanks, crashDir+"="+dir, crashAgent+"="+path, crashRoot+"="+root)
	out, err := cmd.CombinedOutput()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed: %v, %s", err, out)
	}
	id := strings.TrimSpace(string(out))
	if left := groupsOf(t, dir); len(left) != 3 || !left[id] {
		t.Fatalf("the server left %v, want the groups of the sandbox %s and of two blanks", left, id)
	}
	d := open(t, dir, "")
	if left := groupsOf(t, dir); len(left) != 1 || !left[id] {
		t.Errorf("after the next Open there is %v, want %s alone", left, id)
	}
	files, err := os.ReadDir(filepath.Join(dir, "instances"))
	if err != nil || len(files) != 2 {
		t.Errorf("files of instances: %v, %v", files, err)
	}
	i, err := d.Open(t.Context(), runtime.Handle{ID: sandbox.ID(id)})
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, i, "echo", "hello"); got != "hello" {
		t.Errorf("inside: %q", got)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// dieWithBlanks makes a sandbox of a blank, waits for two more, and is killed.
func dieWithBlanks(program []byte) error {
	ctx := context.Background()
	made := make(chan struct{}, 8)
	d, err := native.Open(ctx, native.Options{Dir: os.Getenv(crashDir), Agent: program, Blanks: 2, Checkpoint: func(name string) {
		if name == "blank.made" {
			made <- struct{}{}
		}
	}})
	if err != nil {
		return err
	}
	<-made
	<-made
	id, ok := d.Prepared(runtime.Spec{})
	if !ok {
		return fmt.Errorf("no blank is ready")
	}
	if _, err := d.Create(ctx, specOf(id, os.Getenv(crashRoot))); err != nil {
		return err
	}
	<-made
	fmt.Println(id)
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// BenchmarkCreate is a create and its remove, by itself and from a blank. The time in
// which a blank is made is not counted.
func BenchmarkCreate(b *testing.B) {
	root := imagetest.Python(b).Root
	for name, id := range map[string]func(*native.Driver) sandbox.ID{
		"cold":  func(*native.Driver) sandbox.ID { return sandbox.NewID() },
		"blank": func(d *native.Driver) sandbox.ID { return blankID(b, d) },
	} {
		b.Run(name, func(b *testing.B) {
			blanks := 0
			if name == "blank" {
				blanks = 2
			}
			d := prepared(b, b.TempDir(), blanks)
			defer func() { _ = d.Close() }()
			for b.Loop() {
				b.StopTimer()
				<-time.After(100 * time.Millisecond) // a machine at rest, as a caller finds it
				id := id(d)
				b.StartTimer()
				i, err := d.Create(b.Context(), specOf(id, root))
				b.StopTimer()
				if err != nil {
					b.Fatal(err)
				}
				if err := i.Remove(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// blankProcess finds process 1 of an id by its cgroup, and what it holds of memory.
func blankProcess(t testing.TB, dir string, id sandbox.ID) (pid int, memory string) {
	t.Helper()
	for name := range mustTake(t, dir)[leaktest.Cgroups] {
		if filepath.Base(name) != string(id) {
			continue
		}
		for _, file := range []string{"cgroup.procs", "agent/cgroup.procs"} {
			b, err := os.ReadFile(filepath.Join(name, file))
			if err != nil {
				continue
			}
			if f := strings.Fields(string(b)); len(f) > 0 {
				pid, err := strconv.Atoi(f[0])
				if err != nil {
					t.Fatal(err)
				}
				rollup, err := os.ReadFile("/proc/" + f[0] + "/smaps_rollup")
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(rollup)) {
					if f := strings.Fields(line); f[0] == "Rss:" || f[0] == "Pss:" || f[0] == "Private_Dirty:" {
						memory += strings.Join(f, " ") + " "
					}
				}
				return pid, memory
			}
		}
	}
	t.Fatalf("process 1 of %s is not found", id)
	return 0, ""
}

func threads(t testing.TB, pid int) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

func mustTake(t testing.TB, dir string) leaktest.Snapshot {
	t.Helper()
	now, err := leaktest.Take(leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// trueDir is a directory by its one true name, as the kernel tells it.
func trueDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// box makes a sandbox that goes with the test, before its driver.
func box(t testing.TB, d *native.Driver) *native.Instance {
	t.Helper()
	i := lasting(t, d)
	t.Cleanup(func() {
		if err := i.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// lasting makes a sandbox that stays when the driver is closed.
func lasting(t testing.TB, d *native.Driver) *native.Instance {
	t.Helper()
	i, err := d.Create(context.Background(), boxSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	return i.(*native.Instance)
}

func boxSpec(t testing.TB) runtime.Spec {
	t.Helper()
	return runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: imagetest.Python(t).Root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 2, MemoryMB: 512, DiskMB: 1024, Pids: 256},
	}
}

// sh runs a line of shell as user, which must succeed, and gives what it wrote.
func sh(t testing.TB, i runtime.Instance, user, line string) string {
	t.Helper()
	p, err := agent.NewClient(i.Dial).Start(context.Background(), agent.Command{
		ID: sandbox.NewProcessID(), Shell: line, User: user, Timeout: time.Minute, MaxStdout: 1 << 20, MaxStderr: 1 << 20,
	})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer func() { _ = p.Close() }()
	var out strings.Builder
	for {
		f, err := p.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out.Write(f.Data)
	}
	if r := p.Result(); r.ExitCode != 0 {
		t.Fatalf("%s: %+v\n%s", line, r, out.String())
	}
	return out.String()
}

func begin(t testing.TB, i runtime.Instance, c agent.Command) *agent.Process {
	t.Helper()
	c.ID = sandbox.NewProcessID()
	p, err := agent.NewClient(i.Dial).Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// answers reports whether the agent answers within a while.
func answers(i runtime.Instance, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_, err := agent.NewClient(i.Dial).Ping(ctx)
	return err == nil
}

func pause(t testing.TB, i runtime.Instance) {
	t.Helper()
	if err := i.(runtime.Pauser).Pause(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !i.(runtime.Pauser).Paused() {
		t.Fatal("it is not paused")
	}
}

func resume(t testing.TB, i runtime.Instance) {
	t.Helper()
	if err := i.(runtime.Pauser).Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	if i.(runtime.Pauser).Paused() {
		t.Fatal("it is paused")
	}
}

func TestAPausedSandboxStandsStillAndGoesOn(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	p := begin(t, i, agent.Command{Shell: "while :; do echo x; sleep 0.01; done"})
	next := func(wait time.Duration) bool {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_, err := p.Next(ctx)
		return err == nil
	}
	for range 3 {
		if !next(20 * time.Second) {
			t.Fatal("it does not run")
		}
		pause(t, i)
		pause(t, i)
		for next(200 * time.Millisecond) { // what the agent had sent already
		}
		if answers(i, 200*time.Millisecond) {
			t.Fatal("the agent of a paused sandbox answers")
		}
		resume(t, i)
		resume(t, i)
	}
	if !next(20*time.Second) || !answers(i, 20*time.Second) {
		t.Error("it does not go on")
	}
}

func TestATimeLimitStandsStillWhileItsSandboxIsPaused(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	p := begin(t, i, agent.Command{Shell: "sleep 0.5; read x; echo got $x", StreamStdin: true, Timeout: time.Second})
	pause(t, i)
	<-time.After(1500 * time.Millisecond)
	resume(t, i)
	if _, err := io.WriteString(p, "it\n"); err != nil {
		t.Fatal(err)
	}
	f, err := p.Next(t.Context())
	if err != nil || string(f.Data) != "got it\n" {
		t.Errorf("got %q, %v, %+v", f.Data, err, p.Result())
	}
	q := begin(t, i, agent.Command{Shell: "sleep 600", Timeout: 300 * time.Millisecond})
	pause(t, i)
	resume(t, i)
	if _, err := q.Next(t.Context()); !errors.Is(err, io.EOF) || q.Result().Cause != sandbox.CauseTimeout {
		t.Errorf("what was left of a limit does not hold: %v, %+v", err, q.Result())
	}
}

func TestAPausedSandboxIsFoundPausedAndCanBeStoppedAndRemoved(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	first, second, third := lasting(t, d), lasting(t, d), lasting(t, d)
	sh(t, first, "", "echo kept > /workspace/file")
	p := begin(t, first, agent.Command{Shell: "trap 'echo asked > /workspace/asked; exit' TERM; echo up; while :; do sleep 0.01; done"})
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	for _, i := range []*native.Instance{first, second, third} {
		pause(t, i)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	again := func(i *native.Instance) *native.Instance {
		t.Helper()
		found, err := d.Open(t.Context(), i.Handle())
		if err != nil {
			t.Fatal(err)
		}
		if !found.(runtime.Pauser).Paused() {
			t.Fatal("it is not found paused")
		}
		t.Cleanup(func() { _ = found.Remove(context.Background()) })
		return found.(*native.Instance)
	}
	first, second, third = again(first), again(second), again(third)

	if err := first.Stop(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if first.Paused() {
		t.Error("a stopped sandbox is paused")
	}
	fault1 := first.Pause(t.Context())
	fault2 := first.Resume(t.Context())
	if !fault.Is(fault1, fault.State) || !fault.Is(fault2, fault.State) {
		t.Errorf("of a stopped one: %v, %v", fault1, fault2)
	}
	spec := runtime.Spec{ID: first.Handle().ID, Image: runtime.Image{Root: imagetest.Python(t).Root}, Hostname: "box", Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 1024, Pids: 64}}
	if err := first.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if first.Paused() {
		t.Error("a sandbox that was just started is paused")
	}
	if got := sh(t, first, "", "cat /workspace/file /workspace/asked"); got != "kept\nasked\n" {
		t.Errorf("got %q", got)
	}

	if err := second.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if exit, err := second.Wait(t.Context()); err != nil || exit.Cause != sandbox.CauseStopped {
		t.Errorf("got %+v, %v", exit, err)
	}
	if err := third.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "instances")); err != nil || len(files) != 2 { // of the first
		t.Errorf("left in instances: %v, %v", files, err)
	}
}

// Whatever happens to process 1 of a paused sandbox is told.
func TestAPausedSandboxThatIsKilledIsDown(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	begin(t, i, agent.Command{Shell: "sleep 600"})
	pause(t, i)
	if err := syscall.Kill(processOf(t, dir, i), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if exit, err := i.Wait(ctx); err != nil || exit.Cause != sandbox.CauseKilled {
		t.Errorf("got %+v, %v", exit, err)
	}
	if i.Paused() {
		t.Error("it is down and paused")
	}
}

// processOf reads the pid of a sandbox's process 1 from its state.
func processOf(t testing.TB, dir string, i runtime.Instance) int {
	t.Helper()
	text, err := os.Readlink(filepath.Join(dir, "instances", string(i.Handle().ID)+".state"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// An agent that does not answer costs a pause its patience, and nothing else.
func TestAnAgentThatHangsIsPausedAndResumed(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	p := begin(t, i, agent.Command{Shell: "while :; do date +%N > /workspace/now; sleep 0.01; done"})
	pid := processOf(t, dir, i)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pause(t, i)
	resume(t, i)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// It was told to stand still, and to go on, and gets to both only now.
	sh(t, i, "", "a=$(cat /workspace/now); until [ \"$a\" != \"$(cat /workspace/now)\" ]; do sleep 0.01; done")
	if err := agent.NewClient(i.Dial).Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
		t.Error(err)
	}
}

// What runs inside as root has no way to the files that freeze and thaw, and no state of
// a process keeps it from being frozen.
func TestWhatIsInsideNeitherFreezesNorThawsItself(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	if got := sh(t, i, "root", `
		find / -xdev -name 'cgroup.*' -not -path '/proc/*' 2>/dev/null
		find /sys -name 'cgroup.*' 2>/dev/null
		cut -d' ' -f3 /proc/self/mounts | grep -c cgroup
		ls /proc/1/fd 2>/dev/null
		mkdir -p /tmp/c && mount -t cgroup2 none /tmp/c 2>/dev/null && ls /tmp/c
		unshare -UrmC sh -c 'mount -t cgroup2 none /tmp/c && ls /tmp/c' 2>/dev/null
		unshare -mC sh -c 'mount -t cgroup2 none /tmp/c && ls /tmp/c' 2>/dev/null
		echo done`); got != "0\ndone\n" {
		t.Errorf("inside: %s", got)
	}
	// Stopped, traced, forking, in vfork, in fsync, with many threads, and dead but not reaped.
	begin(t, i, agent.Command{Shell: "kill -STOP $$"})
	begin(t, i, agent.Command{Shell: "while :; do /bin/true & wait; done"})
	begin(t, i, agent.Command{Argv: []string{"python3", "-c", `
import os, threading, time, ctypes, subprocess
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), 19)
    time.sleep(1000)
if os.fork() == 0: os._exit(0)
def sync():
    with open("/workspace/sync", "wb") as f:
        while True:
            f.write(b"x" * 65536); f.flush(); os.fsync(f.fileno()); f.seek(0)
for target in [sync, lambda: [subprocess.run(["/bin/true"]) for _ in iter(int, 1)]] + [lambda: time.sleep(1000)] * 50:
    threading.Thread(target=target, daemon=True).start()
print("up", flush=True)
time.sleep(1000)`}})
	for n := range 20 {
		began := time.Now()
		pause(t, i)
		paused := time.Now()
		resume(t, i)
		if n%5 == 0 {
			t.Logf("paused in %v, resumed in %v", paused.Sub(began), time.Since(paused))
		}
		if !answers(i, 20*time.Second) {
			t.Fatal("the agent does not answer")
		}
	}
}

// Verbs on one sandbox take turns, whatever comes.
func TestVerbsOnOneSandboxTakeTurns(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	begin(t, i, agent.Command{Shell: "while :; do echo x > /workspace/f; done"})
	spec := boxSpec(t)
	spec.ID = i.Handle().ID
	kept := sandbox.NewID()
	if _, err := d.Snapshot(t.Context(), spec.ID, kept); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, verb := range []func() error{
		func() error { return i.Pause(t.Context()) },
		func() error { return i.Pause(t.Context()) },
		func() error { return i.Resume(t.Context()) },
		func() error { return i.Resize(t.Context(), spec.Limits) },
		func() error {
			id := sandbox.NewID()
			_, err := d.Snapshot(t.Context(), spec.ID, id)
			return errors.Join(err, d.RemoveSnapshot(t.Context(), id))
		},
		func() error { return i.Restore(t.Context(), spec, kept) },
		func() error { return i.Stop(t.Context(), 0) },
		func() error { return i.Start(t.Context(), spec) },
		func() error { i.Paused(); return nil },
	} {
		wg.Go(func() {
			for range 8 {
				if err := verb(); err != nil && !fault.Is(err, fault.State) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := i.Start(t.Context(), spec); err != nil && !fault.Is(err, fault.State) {
		t.Fatal(err)
	}
	resume(t, i)
	sh(t, i, "", "echo y > /workspace/f")
}

// The cache of its files is read again when it goes on, and lost to nobody.
func TestMemoryOfAPausedSandboxIsGivenBack(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	sh(t, i, "", "head -c 32M /dev/urandom > /workspace/file; sync /workspace/file; sha256sum /workspace/file > /workspace/sum")
	before := memoryOf(t, dir, i)
	if before < 32<<20 {
		t.Skipf("this host counts %d bytes for a sandbox that wrote 32 MiB", before)
	}
	pause(t, i)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if now := memoryOf(t, dir, i); now < before/4 {
			t.Logf("from %d bytes to %d", before, now)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it used %d bytes, and uses %d", before, memoryOf(t, dir, i))
		}
		<-time.After(50 * time.Millisecond) // nobody is told
	}
	resume(t, i)
	sh(t, i, "", "sha256sum -c /workspace/sum")
}

// memoryOf reads how much memory the commands of a sandbox use.
func memoryOf(t testing.TB, dir string, i runtime.Instance) int {
	t.Helper()
	at := "sandpit/" + native.PathNamespace(dir) + "/" + string(i.Handle().ID)
	for _, pattern := range []string{"/sys/fs/cgroup/memory/" + at + "/memory.usage_in_bytes", "/sys/fs/cgroup/" + at + "/cmd/memory.current"} {
		if text, err := os.ReadFile(pattern); err == nil {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// What a pause and a resume take, of a sandbox in which one command sleeps.
func BenchmarkPause(b *testing.B) {
	skiptest.WithoutRoot(b, "the native runtime makes namespaces with mapped id ranges")
	i := box(b, watched(b, "", nil))
	begin(b, i, agent.Command{Shell: "sleep 600"})
	pauses, resumes := make([]time.Duration, b.N), make([]time.Duration, b.N)
	for n := range b.N {
		began := time.Now()
		pause(b, i)
		pauses[n] = time.Since(began)
		began = time.Now()
		resume(b, i)
		resumes[n] = time.Since(began)
	}
	for name, times := range map[string][]time.Duration{"pause": pauses, "resume": resumes} {
		slices.Sort(times)
		b.ReportMetric(float64(times[b.N/2].Microseconds()), "µs/"+name+"-p50")
		b.ReportMetric(float64(times[b.N*9/10].Microseconds()), "µs/"+name+"-p90")
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// A sandbox whose agent cannot serve goes down, with what the agent says as the reason, and
// leaves nothing.
func TestAnAgentThatRefusesIsTheReasonOfAnEnd(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := openMum(t, dir, "the host has no luck")
	for range 10 { // more than may start at a time
		i := lasting(t, d)
		exit, err := i.Wait(within(t, 10*time.Second))
		if err != nil || exit.Cause != sandbox.CauseHost || !strings.Contains(exit.Detail, "the host has no luck") {
			t.Errorf("its end: %+v, %v, want one that tells what the agent said", exit, err)
		}
		if _, err := i.Dial(t.Context()); fault.Of(err) != fault.State {
			t.Errorf("Dial gives %v, want that it does not run", err)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	closeEmpty(t, d, dir)
}

func TestAnAgentThatSaysNothingIsEnded(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := openMum(t, dir, "")
	d.SetServePatience(300 * time.Millisecond)
	i := lasting(t, d)
	exit, err := i.Wait(within(t, 10*time.Second))
	if err != nil || exit.Cause != sandbox.CauseHost || !strings.Contains(exit.Detail, "did not start") {
		t.Errorf("its end: %+v, %v, want that its agent did not start", exit, err)
	}
	closeEmpty(t, d, dir, i)
}

// While it is paused it cannot say anything.
func TestAnAgentThatIsPausedBeforeItServesIsWaitedFor(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := openMum(t, dir, "")
	const patience = time.Second
	d.SetServePatience(patience)
	i := lasting(t, d)
	if err := i.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit, err := i.Wait(within(t, 3*patience)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it has ended while it was paused: %+v, %v", exit, err)
	}
	if err := i.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit, err := i.Wait(within(t, 10*time.Second)); err != nil || exit.Cause != sandbox.CauseHost {
		t.Errorf("its end: %+v, %v, want that its agent did not start", exit, err)
	}
	closeEmpty(t, d, dir, i)
}

// The next server gives up what never came as far as to its root.
func TestAnAgentThatNeverServedIsNotAdopted(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := openMum(t, dir, "")
	first := lasting(t, d)
	pid, handle := processOf(t, dir, first), first.Handle()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir, "")
	i, err := d.Open(t.Context(), handle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil { // a server that was killed leaves it to the host
		t.Error(err)
	}
	if exit, err := i.Wait(within(t, 10*time.Second)); err != nil || exit.Cause != sandbox.CauseHost {
		t.Errorf("its end: %+v, %v, want one that is the host's", exit, err)
	}
	if err := i.Start(t.Context(), boxSpec(t)); err != nil { // of an agent that serves
		t.Fatal(err)
	}
	if out := sh(t, i, "", "echo well"); out != "well\n" {
		t.Errorf("once started it says %q", out)
	}
	closeEmpty(t, d, dir, i)
}

// A server that goes away between its word and the agent's leaves a sandbox that serves.
func TestASandboxOutlivesAServerThatDidNotHearOfIt(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	for range 20 { // the agent is further each time, or less far
		d := open(t, dir, "")
		handle := lasting(t, d).Handle()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir, "")
		i, err := d.Open(t.Context(), handle)
		if err != nil {
			t.Fatal(err)
		}
		if out := sh(t, i, "", "echo well"); out != "well\n" {
			t.Errorf("after the server is another one it says %q", out)
		}
		closeEmpty(t, d, dir, i)
	}
}

// openMum opens a driver whose agents say word and end, or nothing.
func openMum(t *testing.T, dir, word string) *native.Driver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mum")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X 'main.word="+word+"'", "-o", path, "sandpit.dev/runtime/native/testdata/mum")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build it: %v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := native.Open(t.Context(), native.Options{Dir: dir, Agent: program})
	if err != nil {
		t.Fatalf("native.Open: %v", err)
	}
	return d
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// closeEmpty removes what is left and closes the driver, of which nothing may be on the host then.
func closeEmpty(t *testing.T, d runtime.Driver, dir string, left ...runtime.Instance) {
	t.Helper()
	for _, i := range left {
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

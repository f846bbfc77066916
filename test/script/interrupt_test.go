// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TestCtrlCLeavesNothing types Ctrl-C while commands wait for something: they end with 130, the
// terminal is as it was, and the server has nothing of them.
func TestCtrlCLeavesNothing(t *testing.T) {
	images := needRoot(t)
	t.Run("WhereAnImageIsBuilt", testInterruptedBuild)
	t.Run("WhereOutputIsFollowed", func(t *testing.T) {
		s := startServer(t, images)
		if out, err := s.command("create", "--name", "box").CombinedOutput(); err != nil {
			t.Fatalf("create: %v\n%s", err, out)
		}
		if out, err := s.command("exec", "--detach", "box", "sh", "-c", "echo one; exec sleep 1000").CombinedOutput(); err != nil {
			t.Fatalf("exec: %v\n%s", err, out)
		}
		for _, args := range [][]string{{"logs", "-f", "box", "last"}, {"logs", "-f", "box"}} {
			interrupted(t, s, "one", args...)
		}
		out, err := s.command("ps", "-q", "box").Output()
		if n := len(strings.Fields(string(out))); err != nil || n != 1 {
			t.Errorf("%d processes run, %v; want the one that was followed", n, err)
		}
	})
	t.Run("WhereAShellIsStarted", testInterruptedStart)
}

func startServer(t *testing.T, images string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{dir: dir, env: append(environment(dir, images), "TERM=xterm")}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// interrupted runs a command at a terminal, and types Ctrl-C when it shows text. It returns what was
// shown.
func interrupted(t *testing.T, s *server, text string, args ...string) string {
	t.Helper()
	cmd, ours, theirs, sc := openTerminal(t, s, args...)
	before, err := term.GetState(int(theirs.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	sc.await(t, text)
	typed(t, ours, "\x03")
	exits(t, cmd, sc, 130)
	if after, err := term.GetState(int(theirs.Fd())); err != nil || *after != *before {
		t.Errorf("%q: the terminal is not as it was: %v", args, err)
	}
	// What the command wrote last may be on its way still: this comes behind it.
	const end = "<the command has ended>"
	typed(t, theirs, end)
	sc.await(t, end)
	return sc.String()
}

// testInterruptedBuild tests what waits for an image, in a directory in which another process builds.
func testInterruptedBuild(t *testing.T) {
	images := t.TempDir()
	f, err := os.OpenFile(filepath.Join(images, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, images)
	const building = "another process is building"
	for _, args := range [][]string{{"create"}, {"create", "--name", "web"}, {"run", "true"}} {
		interrupted(t, s, building, args...)
	}
	shown := interrupted(t, s, building, "image", "build")
	if want := "the build goes on; see how far it is with: sandpit image build python"; !strings.Contains(shown, want) {
		t.Errorf("it does not say %q but:\n%s", want, shown)
	}
	if out, err := s.command("ls", "-a", "-q").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("there are sandboxes: %s, %v", out, err)
	}
	out, err := s.command("image", "ls", "--format", "{{.name}} {{.status}}").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "python building\n") {
		t.Errorf("the build does not go on: %s, %v", out, err)
	}
}

// testInterruptedStart tests a shell whose start is under way: the server, which is the test's own, answers
// after Ctrl-C.
func testInterruptedStart(t *testing.T) {
	typedNow, mu := make(chan struct{}), sync.Mutex{}
	var asked []string
	asks := make(chan struct{}, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		asks <- struct{}{}
		<-typedNow
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"process_id": "p1q2r3s4t5u6v7w8", "status": "running"})
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	s := &server{dir: dir, env: append(environment(dir, ""), "TERM=xterm", "SANDPIT_URL="+srv.URL, "SANDPIT_TOKEN=none")}
	cmd, ours, theirs, sc := openTerminal(t, s, "shell", "box")
	before, err := term.GetState(int(theirs.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	<-asks
	typed(t, ours, "\x03")
	sc.await(t, "interrupted: it is ended as soon as")
	close(typedNow)
	exits(t, cmd, sc, 130)
	if after, err := term.GetState(int(theirs.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "DELETE /v1/sandboxes/box/processes/p1q2r3s4t5u6v7w8"; !slices.Contains(asked, want) {
		t.Errorf("the shell was not ended: %q", asked)
	}
}

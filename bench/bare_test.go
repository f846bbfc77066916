// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

func openBare(t *testing.T) (b *bare, dir string) {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes namespaces")
	dir = t.TempDir()
	b, err := newBare(dir, imagetest.Python(t).Root, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error("close:", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "work")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workspace is still there: %v", err)
		}
	})
	return b, dir
}

func TestBare(t *testing.T) {
	b, dir := openBare(t)
	out, err := b.run(t.Context(), environ(workEnv), "/bin/sh", "-c", "id -u; pwd; echo mine > f; touch /etc/f || echo closed; echo $HOME")
	if want := "1000\n/workspace\nclosed\n/workspace/home\n"; err != nil || out != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "work", "f")); err != nil || string(got) != "mine\n" {
		t.Errorf("the workspace is another directory: %q, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "root")); err != nil || len(entries) > 0 {
		t.Errorf("the mounts are seen outside: %v, %v", entries, err)
	}
	if _, err := b.run(t.Context(), nil, "/bin/sh", "-c", "echo why >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a program that fails: got %v, want an error that says why", err)
	}
}

func TestBareEndsWhatAProgramStarted(t *testing.T) {
	b, dir := openBare(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(ctx, nil, "/bin/sh", "-c", "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait")
		ended <- err
	}()
	var child int
	for child == 0 {
		text, err := os.ReadFile(filepath.Join(dir, "work", "pid"))
		if err == nil {
			if child, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-ended:
			t.Fatal("the program ended by itself:", err)
		case <-time.After(askEvery):
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("an interrupted program is no success")
	}
	for limit := time.Now().Add(10 * time.Second); !endedOrDead(child); {
		if time.Now().After(limit) {
			t.Fatalf("process %d goes on", child)
		}
		time.Sleep(askEvery)
	}
}

// endedOrDead reports whether a process has ended, reaped or not.
func endedOrDead(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil && unix.Kill(pid, 0) != nil || strings.Contains(string(b), ") Z ")
}

// The work is done as the benchmark does it, once each: it checks itself what it made.
func TestWork(t *testing.T) {
	b, _ := openBare(t)
	if err := b.put(workFile, workProgram); err != nil {
		t.Fatal(err)
	}
	work := func(args ...string) string {
		t.Helper()
		out, err := b.run(t.Context(), environ(workEnv), append([]string{"/usr/bin/python3", workFile}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	work("prepare")
	kinds := work("kinds")
	if want := "cpu sqlite git pip untar tests copy rm grep status compile npm commits wal fsync"; kinds != want {
		t.Errorf("the default image can do %q, want %q", kinds, want)
	}
	if lacks := work("lacks"); lacks != "" {
		t.Errorf("the default image cannot do %q", lacks)
	}
	for _, kind := range strings.Fields(kinds) {
		if seconds, err := strconv.ParseFloat(work("run", kind), 64); err != nil || seconds <= 0 {
			t.Errorf("%s took %v seconds, %v", kind, seconds, err)
		}
	}
	// It does not take for done what was not done right.
	if err := b.put("tree.tar", nil); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run(t.Context(), environ(workEnv), "/usr/bin/python3", workFile, "run", "untar"); err == nil {
		t.Errorf("an archive without files was unpacked in %s seconds", out)
	}
}

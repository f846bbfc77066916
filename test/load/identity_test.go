// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// end ends the server; what runs in sandboxes goes on.
func (h *host) end() {
	h.t.Helper()
	h.http.CloseIdleConnections()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	<-h.ended
}

// first is when process 1 of a sandbox began: another one began at another time.
func (h *host) first(ref string) string {
	h.t.Helper()
	r, err := h.client.Exec(h.t.Context(), ref, v1.Exec{Command: new("cut -d ' ' -f 22 /proc/1/stat")})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Stdout
}

// runsOn holds that a sandbox is what it was with the server before.
func (h *host) runsOn(ref, first string) {
	h.t.Helper()
	if got, err := h.client.Get(h.t.Context(), ref); err != nil || got.Status != "running" {
		h.t.Errorf("%s: got %+v, %v; want it running", ref, got, err)
	}
	if got := h.first(ref); got != first {
		h.t.Errorf("process 1 of %s began at %q, and now at %q", ref, first, got)
	}
}

func TestADataDirectoryByAnotherPath(t *testing.T) {
	h := open(t)
	if _, _, err := h.client.Create(t.Context(), v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	first := h.first("box")
	data := filepath.Join(h.dir, "data")
	to := func(f func(from, to string) error) {
		t.Helper()
		h.end()
		h.dir = t.TempDir()
		if err := f(data, filepath.Join(h.dir, "data")); err != nil {
			t.Fatal(err)
		}
		h.start()
		h.runsOn("box", first)
	}
	to(os.Symlink)
	to(os.Rename)
	if err := h.client.Delete(t.Context(), "box"); err != nil {
		t.Error(err)
	}
}

// A copy is not started in the place of a directory whose sandboxes run.
func TestACopyInThePlaceOfItsOriginal(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	first := h.first("box")
	h.end()
	data, aside := filepath.Join(h.dir, "data"), filepath.Join(h.dir, "aside")
	if err := os.Rename(data, aside); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--sparse=always", aside, data).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	program, err := h.build()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program, "serve", "--listen", h.listen, "--data", data, "--images", h.images).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is a copy, and 1 sandboxes") || !strings.Contains(string(out), "--new-id") {
		t.Errorf("got %v: %s", err, out)
	}
	if out, _ := exec.CommandContext(ctx, program, "doctor", "--repair", "--data", data).CombinedOutput(); !strings.Contains(string(out), "is a copy, and 1 sandboxes") {
		t.Errorf("doctor says %s", out)
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, data); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.runsOn("box", first)
}

// A store that was put in the place of the one that sandboxes run on, as from a backup, is not
// gone on with: what they write would be gone when they end.
func TestAnotherStoreUnderWhatRuns(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	first := h.first("box")
	h.end()
	program, err := h.build()
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		return string(out), err
	}
	data := filepath.Join(h.dir, "data")
	store, former := filepath.Join(data, "native", "layers"), filepath.Join(h.dir, "former")
	if err := os.Rename(store, former); err != nil {
		t.Fatal(err)
	}
	if out, err := run("cp", "-a", "--sparse=always", former, store); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	const told = "1 sandboxes run on the disks of another store"
	for _, flags := range [][]string{nil, {"--new-store"}} {
		out, err := run(program, append([]string{"serve", "--listen", h.listen, "--data", data, "--images", h.images}, flags...)...)
		if err == nil || !strings.Contains(out, told) || !strings.Contains(out, "doctor --repair") {
			t.Errorf("%q: got %v: %s", flags, err, out)
		}
	}
	if out, _ := run(program, "doctor", "--data", data); !strings.Contains(out, told) {
		t.Errorf("doctor says %s", out)
	}

	other := filepath.Join(h.dir, "other")
	if err := errors.Join(os.Rename(store, other), os.Rename(former, store)); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.runsOn("box", first)
	h.end()

	if err := errors.Join(os.Rename(store, former), os.Rename(other, store)); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(program, "doctor", "--repair", "--data", data); !strings.Contains(out, "its processes were ended") {
		t.Errorf("doctor --repair says %s", out)
	}
	h.start()
	if got, err := h.client.Get(ctx, "box"); err != nil || got.Status != "stopped" {
		t.Errorf("got %+v, %v; want it stopped", got, err)
	}
	if again := h.first("box"); again == first {
		t.Error("it was not started anew")
	}
}

// A server of an earlier version named its part of the host after its path, and left no file
// that says so.
func TestSandboxesOfAnEarlierVersionAreFound(t *testing.T) {
	h := open(t)
	h.end()
	path := filepath.Join(h.dir, "data", "id.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := map[string]any{}
	if err := json.Unmarshal(b, &id); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(filepath.Join(h.dir, "data", "native")))
	id["namespace"] = hex.EncodeToString(sum[:6])
	if b, err = json.Marshal(id); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	if _, _, err := h.client.Create(t.Context(), v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	first := h.first("box")
	h.end()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	h.start()
	if h.marks[0] != hex.EncodeToString(sum[:6]) {
		t.Errorf("the namespace is %s", h.marks[0])
	}
	h.runsOn("box", first)
}

// Records that were put back from a copy are older than what runs: it is said, what is
// stopped in them starts all the same, and doctor ends what they do not know.
func TestOlderRecordsThanWhatRuns(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	for _, key := range []string{"box", "back"} {
		if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new(key)}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.client.Stop(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	h.end()
	records := filepath.Join(h.dir, "data", "sandpit.db")
	old, err := os.ReadFile(records)
	if err != nil {
		t.Fatal(err)
	}
	h.start()
	for _, key := range []string{"box", "back"} {
		if _, err := h.client.Start(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.says(ctx, "back", "echo old > f; cat f", "old\n"); err != nil {
		t.Fatal(err)
	}
	newer, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("newer")})
	if err != nil {
		t.Fatal(err)
	}
	first := h.first("box")
	h.end()
	if err := os.WriteFile(records, old, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(records + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	h.start()
	if log := h.tail(); strings.Count(log, "the records are not those of what runs") != 3 {
		t.Errorf("the server says\n%s", log)
	}
	if _, err := h.client.Start(ctx, "box"); err != nil {
		t.Errorf("one that runs and is stopped in the records: %v", err)
	}
	if again := h.first("box"); again == first {
		t.Error("it was not started anew")
	}
	if back, err := h.client.Rollback(ctx, "back", "base"); err != nil || back.Status != "stopped" {
		t.Errorf("a rollback of one that runs and is stopped in the records: %+v, %v", back, err)
	}
	if _, err := h.client.Start(ctx, "back"); err != nil {
		t.Error(err)
	}
	if err := h.says(ctx, "back", "test -e f || echo new", "new\n"); err != nil {
		t.Error(err)
	}
	h.end()
	program, err := h.build()
	if err != nil {
		t.Fatal(err)
	}
	doctor := func(args ...string) string {
		t.Helper()
		out, _ := exec.CommandContext(ctx, program, append([]string{"doctor", "--data", filepath.Join(h.dir, "data")}, args...)...).CombinedOutput()
		return string(out)
	}
	about := "sandbox " + newer.ID
	if out := doctor(); !strings.Contains(out, about) || !strings.Contains(out, "the records do not know it") {
		t.Errorf("doctor says\n%s", out)
	}
	if out := doctor("--repair"); !strings.Contains(out, about) || !strings.Contains(out, "its processes were ended") {
		t.Errorf("doctor --repair says\n%s", out)
	}
	if out := doctor("--repair"); strings.Contains(out, about) {
		t.Errorf("after it was mended doctor says\n%s", out)
	}
	h.start()
	if got, err := h.client.Get(ctx, "box"); err != nil || got.Status != "running" {
		t.Errorf("got %+v, %v; want it running", got, err)
	}
}

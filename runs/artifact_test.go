// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// artifact reads one of a run's; "" where there is none.
func (h *house) artifact(run *sandbox.Run, path string) string {
	h.t.Helper()
	f, a, err := h.runner.OpenArtifact(run, path)
	if fault.Is(err, fault.NotFound) {
		return ""
	}
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != a.Size {
		h.t.Errorf("%s: %d bytes of %d, %v", path, len(b), a.Size, err)
	}
	return string(b)
}

func artifactPaths(run *sandbox.Run) string {
	var out []string
	for _, a := range run.Artifacts {
		out = append(out, a.Path)
	}
	return strings.Join(out, " ")
}

// stored lists what is below the directory of artifacts.
func stored(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "artifacts"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
			if d.Type() != 0 {
				t.Errorf("%s is no regular file: %s", p, d.Type())
			}
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return files
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	t.Run("AreCopiedOutWithTheirDirectoriesAlsoAfterAFailure", func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, withArtifacts(dir))
		run := h.run(runs.Request{Commands: shells("cd ../artifacts; mkdir -p a/b; echo one > a/b/x; echo two > a/x; echo three > x; exit 1")})
		if got := artifactPaths(run); got != "a/b/x a/x x" || run.ArtifactBytes != 4+4+6 || !run.ArtifactsKept {
			t.Errorf("got %q, %d bytes, %s", got, run.ArtifactBytes, run.ArtifactsError)
		}
		for path, want := range map[string]string{"a/b/x": "one\n", "a/x": "two\n", "x": "three\n", "b/x": "", "a/b/../x": "", "../x": "", "/x": ""} {
			if got := h.artifact(run, path); got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
	})

	t.Run("LatestIsTheLastThatWorkedAndSurvivesARestart", func(t *testing.T) {
		dir := t.TempDir()
		small := func(o *runs.Options) { withArtifacts(dir)(o); o.Artifacts.MaxFileBytes = 100 }
		h := open(t, dir, small)
		_, err := h.runner.ArtifactRun(t.Context(), alice, "box", runs.Latest)
		wantCode(t, err, fault.NotFound)
		first := h.run(runs.Request{Commands: shells("echo first > ../artifacts/x")})
		second := h.run(runs.Request{Commands: shells("echo second > ../artifacts/x")})
		bad := h.run(runs.Request{Commands: shells("head -c 101 /dev/zero > ../artifacts/big")})
		if bad.ArtifactsKept || bad.ArtifactsError == "" || len(bad.Artifacts) != 0 || bad.State != sandbox.RunCompleted {
			t.Errorf("a run with a file that is too large: %+v", bad)
		}
		h.restart()
		for _, ref := range []string{"box", string(first.Sandbox)} {
			latest, err := h.runner.ArtifactRun(t.Context(), alice, ref, runs.Latest)
			if err != nil || latest.ID != second.ID || h.artifact(latest, "x") != "second\n" {
				t.Errorf("latest by %s: %+v, %v", ref, latest, err)
			}
		}
		old, err := h.runner.ArtifactRun(t.Context(), alice, "box", first.ID)
		if err != nil || h.artifact(old, "x") != "first\n" {
			t.Errorf("the first: %v", err)
		}
		_, err = h.runner.ArtifactRun(t.Context(), alice, "other", first.ID)
		wantCode(t, err, fault.NotFound)
	})

	t.Run("ThatDidNotChangeAreStoredOnce", func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, withArtifacts(dir))
		first := h.run(runs.Request{Commands: shells("cd ../artifacts; echo same > same; echo before > changed")})
		second := h.run(runs.Request{Commands: shells("cd ../artifacts; echo after! > changed")})
		same := func(name string) bool {
			a, err := os.Stat(filepath.Join(dir, "artifacts", first.ID, name))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.Stat(filepath.Join(dir, "artifacts", second.ID, name))
			if err != nil {
				t.Fatal(err)
			}
			return os.SameFile(a, b)
		}
		if !same("same") || same("changed") {
			t.Errorf("stored once: same %t, changed %t", same("same"), same("changed"))
		}
		if got := h.artifact(first, "changed"); got != "before\n" {
			t.Errorf("the first run's file became %q", got)
		}
	})

	t.Run("OverTheBoundsAreAllOrNothing", func(t *testing.T) {
		for name, c := range map[string]struct {
			shell string
			why   string
		}{
			"files":  {"for i in 1 2 3 4; do echo > ../artifacts/$i; done", "more than 3 files"},
			"bytes":  {"for i in 1 2 3; do head -c 90 /dev/zero > ../artifacts/$i; done", "more than 200 bytes"},
			"a file": {"echo > ../artifacts/0; head -c 101 /dev/zero > ../artifacts/1", "more than 100 bytes"},
			"sparse": {"truncate -s 8G ../artifacts/1", "more than 100 bytes"},
			"depth":  {"cd ../artifacts; for i in $(seq 40); do mkdir d; cd d; done; echo > x", "in one another"},
		} {
			dir := t.TempDir()
			h := open(t, dir, func(o *runs.Options) {
				withArtifacts(dir)(o)
				o.Artifacts.MaxFiles, o.Artifacts.MaxBytes, o.Artifacts.MaxFileBytes = 3, 200, 100
			})
			run := h.run(runs.Request{Commands: shells(c.shell)})
			if !strings.Contains(run.ArtifactsError, c.why) || run.ArtifactsKept || len(run.Artifacts) > 0 {
				t.Errorf("%s: got %q and %v", name, run.ArtifactsError, run.Artifacts)
			}
			if files := stored(t, dir); len(files) > 0 {
				t.Errorf("%s: these are left: %v", name, files)
			}
			for _, ev := range h.runEvents(run.ID) {
				if ev.Type == sandbox.RunExtracted {
					t.Errorf("%s: an event says that they were copied", name)
				}
			}
			// It is the run's outcome that counts, and the next run may do better.
			if run.State != sandbox.RunCompleted {
				t.Errorf("%s: the run is %s", name, run.State)
			}
			next := h.run(runs.Request{Commands: shells("cd ../artifacts; rm -r *; echo ok > ok")})
			if got := artifactPaths(next); got != "ok" {
				t.Errorf("%s: the next run's: %q, %s", name, got, next.ArtifactsError)
			}
		}
	})

	t.Run("AreNeverLinksDevicesOrWhatLiesElsewhere", func(t *testing.T) {
		dir := t.TempDir()
		secret := filepath.Join(dir, "secret")
		if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := open(t, dir, withArtifacts(dir))
		run := h.run(runs.Request{Commands: shells("cd ../artifacts",
			"cd ../artifacts; ln -s "+secret+" link; ln -s / root; ln -s .. up; ln -s loop loop; mkfifo fifo; echo ok > 'a b\"<>&?#%.txt'; echo ok > '..x'; mkdir ...; echo ok > .../x",
			"cd ../artifacts; printf ok > \"$(printf 'bad\\xff')\"; printf ok > \"$(printf 'new\\nline')\"")})
		if run.State != sandbox.RunCompleted {
			t.Fatalf("%+v", run)
		}
		if got, want := artifactPaths(run), ".../x ..x a b\"<>&?#%.txt new\nline"; !strings.Contains(got, ".../x") || !run.ArtifactsKept {
			t.Errorf("got %q (%s), want %q", got, run.ArtifactsError, want)
		}
		for _, a := range run.Artifacts {
			if a.Path == "link" || a.Path == "fifo" || strings.HasPrefix(a.Path, "up/") || strings.HasPrefix(a.Path, "root/") || strings.HasPrefix(a.Path, "loop") {
				t.Errorf("%q was copied", a.Path)
			}
		}
		if h.artifact(run, "..x") != "ok\n" || h.artifact(run, ".../x") != "ok\n" || h.artifact(run, "a b\"<>&?#%.txt") != "ok\n" {
			t.Error("odd names are not served")
		}
		for _, f := range stored(t, dir) {
			if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "of the host") {
				t.Errorf("%s: %q, %v", f, b, err)
			}
		}
	})

	t.Run("ThatChangeMeanwhileBreakNothing", func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, func(o *runs.Options) { withArtifacts(dir)(o); o.Artifacts.MaxFileBytes = 1 << 20 })
		h.create(engine.CreateRequest{Key: "box"})
		_, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: `cd ../artifacts
			while :; do echo x >> grows; rm -f flips; ln -s /etc/hostname flips; rm -f flips; mkfifo flips; rm -f flips; echo file > flips; mkdir -p d; echo > d/x; rm -r d; done`})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			run := h.run(runs.Request{Commands: shells("true")})
			if !run.ArtifactsKept {
				t.Errorf("they were not copied: %s", run.ArtifactsError)
			}
			for _, a := range run.Artifacts {
				if got := h.artifact(run, a.Path); int64(len(got)) != a.Size {
					t.Errorf("%s has %d bytes, and the list says %d", a.Path, len(got), a.Size)
				}
			}
		}
		stored(t, dir)
	})

	t.Run("OfOldRunsMakeRoomForThoseOfNewOnes", func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, func(o *runs.Options) { withArtifacts(dir)(o); o.Artifacts.Total = 250 })
		var all []*sandbox.Run
		for range 3 {
			all = append(all, h.run(runs.Request{Commands: shells("head -c 100 /dev/urandom > ../artifacts/x")}))
		}
		h.await("the first run's to be collected", func() bool {
			r, err := h.runner.Get(t.Context(), alice, all[0].ID)
			return err == nil && !r.ArtifactsKept && strings.Contains(r.ArtifactsError, "collected")
		})
		for _, r := range all[1:] {
			if h.artifact(r, "x") == "" {
				t.Error("a newer run's went, too")
			}
		}
		if got, err := h.runner.Get(t.Context(), alice, all[0].ID); err != nil || h.artifact(got, "x") != "" {
			t.Errorf("the one that was collected: %+v, %v", got, err)
		}
	})
}

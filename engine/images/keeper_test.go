// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

var (
	owner = access.Caller{Project: "default", Actor: "owner", Via: "rest", Scopes: []access.Scope{access.ServerAdmin}}
	alice = access.Caller{Project: "default", Actor: "alice", TokenID: "t1", Via: "rest", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	chief = access.Caller{Project: "default", Actor: "chief", TokenID: "t2", Via: "rest", Scopes: []access.Scope{access.Admin}}
	mary  = access.Caller{Project: "other", Actor: "mary", TokenID: "t3", Via: "rest", Scopes: []access.Scope{access.Admin}}
)

// digest is that of a build of a test, by a letter.
func digest(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// laid are images whose builds a test has laid on disk. New sandboxes get the one with now.
type laid struct {
	*image.Store
	dir string

	mu  sync.Mutex
	now string
}

// lay puts a build of python on disk.
func (l *laid) lay(t *testing.T, letter string) {
	t.Helper()
	dir := filepath.Join(l.dir, "python", strings.Repeat(letter, 12))
	if err := os.MkdirAll(filepath.Join(dir, "rootfs", "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{
		"schema": 1, "name": "python", "digest": digest(letter), "recipe": "a test's", "created": time.Now(),
		"size_bytes": 4096, "files": 2, "versions": map[string]string{"python": "3.11.2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "image.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (l *laid) has(letter string) bool {
	_, err := os.Stat(filepath.Join(l.dir, "python", strings.Repeat(letter, 12), "rootfs"))
	return err == nil
}

func (l *laid) use(letter string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = digest(letter)
}

func (l *laid) Find(context.Context, string) (image.Image, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.FindDigest("python", l.now)
}

func (l *laid) Ensure(ctx context.Context, name string) (image.Image, error) {
	return l.Find(ctx, name)
}

type house struct {
	*enginetest.Server
	*laid
	keeper *images.Keeper
}

func start(t *testing.T, change ...func(*engine.Options)) *house {
	t.Helper()
	dir := t.TempDir()
	s, err := image.Open(image.Options{Dir: filepath.Join(dir, "images")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &laid{Store: s, dir: filepath.Join(dir, "images")}
	l.lay(t, "a")
	l.lay(t, "b")
	l.use("a")
	server := enginetest.Start(t, dir, append([]func(*engine.Options){func(o *engine.Options) { o.Images = l }}, change...)...)
	return &house{Server: server, laid: l, keeper: images.New(server.Engine, s)}
}

func (h *house) create(t *testing.T, c access.Caller, key string) *sandbox.Sandbox {
	t.Helper()
	s, _, err := h.Engine.Create(t.Context(), c, engine.CreateRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func want(t *testing.T, err error, code fault.Code, parts ...string) {
	t.Helper()
	if fault.Of(err) != code {
		t.Errorf("got %v, want %s", err, code)
		return
	}
	text := err.Error() + " → " + fault.As(err).Remedy
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}

func TestInspectSaysWhoUsesWhich(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t, alice, "web")
	hers := h.create(t, mary, "secret-name")
	snap, err := h.Engine.CreateSnapshot(t.Context(), alice, "web", engine.SnapshotRequest{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.keeper.Inspect(t.Context(), alice, "python-3.12")
	if err != nil || d.Name != "python" || len(d.Builds) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, b := range d.Builds {
		used := b.Digest == digest("a")
		if used == b.Use.Empty() || used && (len(b.Sandboxes) != 2 || len(b.Snapshots) != 1 || b.Snapshots[0].ID != snap.ID) {
			t.Errorf("%s: %+v", b.Digest, b.Use)
		}
	}
	if counts, err := h.keeper.Counts(t.Context(), alice, []string{"python", "node"}); err != nil || counts["python"] != 2 || counts["node"] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
	if images.Sees(alice, hers.Project) || !images.Sees(owner, hers.Project) || images.Sees(chief, hers.Project) {
		t.Error("a project is seen by others, or not by the server's administrator")
	}
	_, err = h.keeper.Inspect(t.Context(), alice, "../python")
	want(t, err, fault.NotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	t.Run("WhatIsInUseIsRefusedWithWhoUsesIt", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		h.create(t, alice, "web")
		h.create(t, mary, "hers")
		for _, d := range []images.Deletion{{Name: "python"}, {Name: "python-3.12", Digest: digest("a")}, {Name: "python", Digest: strings.Repeat("a", 12)}} {
			_, err := h.keeper.Delete(t.Context(), owner, d)
			want(t, err, fault.Conflict, "2 sandboxes (", "web", "hers", "--force --dry-run")
		}
		if !h.has("a") || !h.has("b") {
			t.Error("something was deleted")
		}
		got, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Force: true, DryRun: true})
		if err != nil || len(got.Use.Sandboxes) != 2 || len(got.Builds) != 2 || got.Bytes != 8192 || !h.has("a") || !h.has("b") {
			t.Errorf("dry: %+v, %v", got, err)
		}
		// One that is stopped uses it all the same, and starts.
		if _, err := h.Engine.Stop(t.Context(), alice, "web"); err != nil {
			t.Fatal(err)
		}
		_, err = h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python"})
		want(t, err, fault.Conflict)
		if _, err := h.Engine.Start(t.Context(), alice, "web"); err != nil {
			t.Error(err)
		}
	})
	t.Run("WhatNobodyUsesGoes", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		h.create(t, alice, "web")
		got, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Digest: digest("b")})
		if err != nil || got.Bytes != 4096 || h.has("b") || !h.has("a") {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Digest: digest("b")})
		want(t, err, fault.NotFound)
	})
	t.Run("ForceDeletesWhoUsesIt", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		web := h.create(t, alice, "web")
		h.create(t, alice, "down")
		snap, err := h.Engine.CreateSnapshot(t.Context(), alice, "web", engine.SnapshotRequest{Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Engine.Stop(t.Context(), alice, "down"); err != nil {
			t.Fatal(err)
		}
		got, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Force: true})
		if err != nil || len(got.Use.Sandboxes) != 2 || len(got.Use.Snapshots) != 1 || h.has("a") || h.has("b") {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = h.Engine.Get(t.Context(), alice, string(web.ID))
		want(t, err, fault.NotFound)
		_, err = h.Engine.Snapshot(t.Context(), alice, "", string(snap.ID))
		want(t, err, fault.NotFound)
	})
	t.Run("ForceEndsWhatOtherProjectsHave", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		h.create(t, alice, "web")
		hers := h.create(t, mary, "hers")
		if _, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Force: true}); err != nil {
			t.Error(err)
		}
		_, err := h.Engine.Get(t.Context(), mary, string(hers.ID))
		want(t, err, fault.NotFound)
	})
	t.Run("ItIsForTheServersAdministratorAlone", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		for _, c := range []access.Caller{alice, chief, mary} {
			for what, do := range map[string]func() error{
				"Delete": func() error {
					_, err := h.keeper.Delete(t.Context(), c, images.Deletion{Name: "python", Force: true})
					return err
				},
				"Delete, dry": func() error {
					_, err := h.keeper.Delete(t.Context(), c, images.Deletion{Name: "python", Force: true, DryRun: true})
					return err
				},
				"Prune":   func() error { _, err := h.keeper.Prune(t.Context(), c, images.Pruning{Cache: true}); return err },
				"Rebuild": func() error { _, err := h.keeper.Rebuild(t.Context(), c, "python"); return err },
				"Save":    func() error { _, err := h.keeper.Save(t.Context(), c, "python"); return err },
				"Push": func() error {
					_, err := h.keeper.Push(t.Context(), c, "python", "registry.example/x:1", nil)
					return err
				},
				"ChangePool": func() error {
					_, _, err := h.keeper.ChangePool(t.Context(), c, images.PoolChange{Image: "python", Min: new(1)})
					return err
				},
			} {
				t.Run(what+" by "+c.Actor, func(t *testing.T) { want(t, do(), fault.Denied, "whole server", c.Project) })
			}
		}
		if !h.has("a") || !h.has("b") {
			t.Error("something was deleted")
		}
	})
	t.Run("APoolUsesIt", func(t *testing.T) {
		t.Parallel()
		h := start(t, func(o *engine.Options) { o.Pools = []prewarm.Pool{{Name: "ahead", Image: "python", Min: 2}} })
		h.Await(t, "the pool", func() bool { return h.Engine.Pools().Using(digest("a"))["ahead"] == 2 })
		_, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Digest: digest("a")})
		want(t, err, fault.Conflict, "2 ready sandboxes of the pool ahead")
		h.use("b")
		got, err := h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Digest: digest("a"), Force: true})
		if err != nil || got.Use.Pools["ahead"] != 2 || h.has("a") {
			t.Errorf("%+v, %v", got, err)
		}
		if n := h.Engine.Pools().Using(digest("a")); len(n) != 0 {
			t.Errorf("the pool still has %v", n)
		}
	})
}

// Of a create and a delete at once either one may win; nobody is left without its image.
func TestCreateAndDeleteAtOnce(t *testing.T) {
	t.Parallel()
	h := start(t)
	made, deleted := 0, 0
	for range 40 {
		h.lay(t, "a")
		var s *sandbox.Sandbox
		var createErr, deleteErr error
		var wg sync.WaitGroup
		wg.Go(func() { s, _, createErr = h.Engine.Create(t.Context(), alice, engine.CreateRequest{}) })
		wg.Go(func() {
			_, deleteErr = h.keeper.Delete(t.Context(), owner, images.Deletion{Name: "python", Digest: digest("a")})
		})
		wg.Wait()
		switch {
		case createErr == nil:
			made++
			want(t, deleteErr, fault.Conflict)
			if !h.has("a") {
				t.Fatal("the image of a sandbox that runs is gone")
			}
			if err := h.Engine.Delete(t.Context(), alice, string(s.ID)); err != nil {
				t.Fatal(err)
			}
		case fault.Is(createErr, fault.Conflict), fault.Is(createErr, fault.NotFound):
			if deleteErr == nil {
				deleted++
			} else {
				want(t, deleteErr, fault.Conflict)
			}
		default:
			t.Fatal(createErr)
		}
		if page, err := h.Engine.List(t.Context(), alice, engine.SandboxesRequest{}); err != nil || len(page.Items) != 0 {
			t.Fatalf("records are left: %v, %v", page.Items, err)
		}
	}
	t.Logf("%d creates and %d deletes won", made, deleted)
}

func TestPrune(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.lay(t, "c")
	h.create(t, alice, "web")
	cache := filepath.Join(h.dir, "cache", "apt")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "a.deb"), make([]byte, 1<<16), 0o644); err != nil {
		t.Fatal(err)
	}
	dry, err := h.keeper.Prune(t.Context(), owner, images.Pruning{Cache: true, DryRun: true})
	if err != nil || len(dry.Builds) != 2 || dry.Kept != 4096 || dry.CacheBytes < 1<<16 || dry.Bytes != 8192+dry.CacheBytes || !h.has("b") || !h.has("c") {
		t.Errorf("dry: %+v, %v", dry, err)
	}
	got, err := h.keeper.Prune(t.Context(), owner, images.Pruning{})
	if err != nil || len(got.Builds) != 2 || got.Bytes != 8192 || got.CacheBytes != 0 || h.has("b") || h.has("c") || !h.has("a") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := h.keeper.Prune(t.Context(), owner, images.Pruning{Cache: true}); err != nil || len(got.Builds) != 0 || got.Bytes != dry.CacheBytes {
		t.Errorf("again: %+v, %v", got, err)
	}
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Error(err)
	}
}

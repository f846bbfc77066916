// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// TestACopyOfADataDirectory is the backup of docs/operations.md: sandboxes stopped, server
// ended, directory copied. Original and copy are served side by side then, the copy with an id
// of its own, and neither touches the other.
func TestACopyOfADataDirectory(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.CreateVolume(ctx, v1.CreateVolume{Name: "data"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("mounts"), Volumes: []v1.MountVolume{{Volume: "data", Path: "/data"}}}); err != nil {
		t.Fatal(err)
	}
	for key, command := range map[string]string{
		"box":    "echo first > file; ln -s /etc/passwd link; truncate -s 1G holes; echo end >> holes",
		"mounts": "echo kept > /data/file",
	} {
		if err := h.says(ctx, key, command, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.client.Snapshot(ctx, "box", v1.CreateSnapshot{Name: new("snap")}); err != nil {
		t.Fatal(err)
	}
	if err := h.says(ctx, "box", "echo second > file", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.SetSecret(ctx, "box", "WORD", v1.SetSecret{Value: "the word of it"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"box", "mounts"} {
		if _, err := h.client.Stop(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	h.http.CloseIdleConnections()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-h.ended

	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", "--sparse=always", filepath.Join(h.dir, "data"), filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	c := &host{t: t, listen: h.listen, build: h.build, dir: dir, images: h.images, token: h.token, flags: []string{"--new-id"}}
	if c.empty, err = leaktest.Take(leaktest.Scope{Dir: filepath.Join(dir, "data"), Marks: c.marks}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.sweep)
	h.start()
	c.start()

	same := func(one *host) {
		t.Helper()
		for _, key := range []string{"box", "mounts"} {
			if got, err := one.client.Get(ctx, key); err != nil || got.Status != "stopped" {
				t.Errorf("%s: got %+v, %v; want it stopped", key, got, err)
			}
			if _, err := one.client.Start(ctx, key); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range []struct{ key, command, want string }{
			{"box", "cat file; readlink link; stat -c %s holes; tail -c 4 holes", "second\n/etc/passwd\n1073741828\nend\n"},
			{"box", `test "$(printf %s "$WORD" | sha256sum | cut -c 1-64)" = ` + hashed("the word of it") + " && echo same", "same\n"},
			{"mounts", "cat /data/file", "kept\n"},
		} {
			if err := one.says(ctx, x.key, x.command, x.want); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := one.client.Create(ctx, v1.CreateSandbox{Key: new("from"), FromSnapshot: new("box/snap")}); err != nil {
			t.Fatal(err)
		}
		if err := one.says(ctx, "from", "cat file", "first\n"); err != nil {
			t.Error(err)
		}
	}
	same(c)
	if err := c.says(ctx, "box", "echo copy > file", ""); err != nil {
		t.Error(err)
	}
	if err := c.deleteAll(ctx); err != nil {
		t.Error(err)
	}
	same(h) // what the copy did is nothing to the original
	page, err := c.client.ListPage(ctx, client.ListQuery{})
	if err != nil || page.Total != 0 {
		t.Errorf("the copy has %d sandboxes (%v), want none of the original's", page.Total, err)
	}
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

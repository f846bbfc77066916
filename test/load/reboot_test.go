// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// powerOff does to the host, as far as the server is concerned, what a restart of it
// does: every process, mount, cgroup, socket's listener and loop device of ours goes, and
// only the files stay, with states of another boot. The server is dead already.
func (h *host) powerOff(ctx context.Context) error {
	scope := h.scope()
	scope.Servers = nil
	procs, err := scope.Processes()
	if err != nil {
		return err
	}
	for _, p := range procs {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
	}
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	const many = 1 << 20
	// Everything but directories and cgroups goes by itself now, the store's mount too.
	left, now, err := leaktest.Settle(limit, scope, h.empty, []leaktest.Cache{
		{Kind: leaktest.Directories, Most: many}, {Kind: leaktest.Cgroups, Most: many},
	})
	if err != nil || len(left) > 0 {
		return fmt.Errorf("still there (%w): %s", err, strings.Join(left, ", "))
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(now[leaktest.Cgroups]))) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	changed, err := h.forgetBoot()
	if err == nil && changed == 0 {
		err = errors.New("no state of a sandbox was found")
	}
	return err
}

// forgetBoot makes the states of sandboxes those of another boot, and returns how many there were.
func (h *host) forgetBoot() (changed int, err error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, err
	}
	boot := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")[:16]
	dir := filepath.Join(h.dir, "data", "native", "instances")
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		text, err := os.Readlink(path)
		if err != nil || !strings.Contains(text, boot) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return changed, err
		}
		if err := os.Symlink(strings.Replace(text, boot, strings.Repeat("0", 16), 1), path); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// A host that was restarted has its sandboxes stopped, with that as the cause, and each
// starts again with its data whole, under its id and its key.
func TestReboot(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	const write = `dd if=/dev/urandom of=big bs=1M count=16 status=none && mkdir -p deep/er && echo life > deep/er/f && sync && sha256sum big | cut -c1-64`
	sums := map[string]string{}
	key := "kept"
	for _, r := range []v1.CreateSandbox{{Key: &key}, {}, {}} {
		box, _, err := h.client.Create(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		command := write
		out, err := h.client.Exec(ctx, box.ID, v1.Exec{Command: &command})
		if err != nil || out.ExitCode == nil || *out.ExitCode != 0 {
			t.Fatalf("write: %+v, %v", out, err)
		}
		sums[box.ID] = out.Stdout
	}
	ids := slices.Sorted(maps.Keys(sums))
	stopped := ids[0]
	if _, err := h.client.Stop(ctx, stopped); err != nil {
		t.Fatal(err)
	}
	h.kill()
	if err := h.powerOff(ctx); err != nil {
		t.Fatalf("switch the host off: %v", err)
	}
	h.start()
	for _, id := range ids {
		box, err := h.client.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		cause, detail := "host", "the host was restarted"
		if id == stopped {
			cause, detail = "user", "stopped by"
		}
		if box.Status != "stopped" || box.StopCause != cause || !strings.Contains(box.StopDetail, detail) {
			t.Errorf("%s is %s, cause %s (%s); want stopped, cause %s", id, box.Status, box.StopCause, box.StopDetail, cause)
		}
		if _, err := h.client.Start(ctx, id); err != nil {
			t.Fatalf("start again: %v", err)
		}
		if err := h.says(ctx, id, "sha256sum big | cut -c1-64; cat deep/er/f", sums[id]+"life\n"); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.client.Get(ctx, key); err != nil {
		t.Errorf("by its key: %v", err)
	}
}

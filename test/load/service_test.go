// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/skiptest"
)

// unitFile is the service that docs/service.md has users install.
const unitFile = "../../deploy/systemd/sandpit.service"

// unit returns the values of a setting of the service, in its order.
func unit(t *testing.T, setting string) []string {
	t.Helper()
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, line := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, setting+"="); ok {
			all = append(all, strings.Fields(v)...)
		}
	}
	return all
}

// confined returns a build whose program has the capabilities of the service and no_new_privs, as systemd
// starts it, and those capabilities.
func confined(t *testing.T, without string) (build func() (string, error), capabilities []string) {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("this host has no setpriv (util-linux), which drops capabilities")
	}
	keep := "-all"
	for _, c := range unit(t, "CapabilityBoundingSet") {
		if c != without {
			capabilities = append(capabilities, c)
			keep += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
		}
	}
	script := filepath.Join(t.TempDir(), "sandpit")
	return func() (string, error) {
		path, err := program()
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("#!/bin/sh\nexec %s --no-new-privs --inh-caps=-all --bounding-set=%s %s \"$@\"\n", setpriv, keep, path)
		return script, os.WriteFile(script, []byte(text), 0o700)
	}, capabilities
}

// What the service leaves a server is all that it needs: sandboxes, networks, snapshots, forks, volumes,
// changed files, and what outlives it.
func TestTheServiceHasTheRightsThatItNeedsAndNoOther(t *testing.T) {
	build, capabilities := confined(t, "")
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
	h := hostIn(t, t.TempDir(), "127.0.0.1:0")
	h.build = build
	t.Cleanup(h.sweep)
	h.start()
	ctx := t.Context()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if has := bounding(t, status); !slices.Equal(has, slices.Sorted(slices.Values(capabilities))) || !bytes.Contains(status, []byte("NoNewPrivs:\t1")) {
		t.Fatalf("the server has the capabilities %q, want %q; its status is\n%s", has, capabilities, status)
	}
	if err := h.life(ctx); err != nil {
		t.Fatal(err)
	}
	// The next one finds what this one leaves.
	box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.says(ctx, box.ID, "echo kept > f; cat f", "kept\n"); err != nil {
		t.Error(err)
	}
	h.kill()
	h.start()
	if err := h.says(ctx, box.ID, "cat f", "kept\n"); err != nil {
		t.Error(err)
	}
}

// life is one of a sandbox with a network, in which all is done that a right may be needed for.
func (h *host) life(ctx context.Context) error {
	if _, err := h.client.CreateVolume(ctx, v1.CreateVolume{Name: "shared"}); err != nil {
		return err
	}
	box, _, err := h.client.Create(ctx, v1.CreateSandbox{Network: "open", Volumes: []v1.MountVolume{{Volume: "shared", Path: "/workspace/shared"}}})
	if err != nil {
		return err
	}
	command := "echo kept > f; echo all > shared/f; chmod 600 f; cat f shared/f; id -u"
	r, err := h.client.Exec(ctx, box.ID, v1.Exec{Command: &command})
	if err != nil {
		return err
	}
	if r.Stdout != "kept\nall\n1000\n" || len(r.FilesChanged) == 0 || !r.FilesChangedComplete {
		return fmt.Errorf("a command: %+v", r)
	}
	root := "mkdir -p /srv/theirs && touch /srv/theirs/f && chown -R 33:33 /srv/theirs && chmod 0 /srv/theirs && cd /workspace/shared && touch g && chmod 4755 g && id -u"
	if r, err = h.client.Exec(ctx, box.ID, v1.Exec{Command: &root, User: new("root")}); err != nil {
		return err
	}
	if r.Stdout != "0\n" {
		return fmt.Errorf("a command of root's: %+v", r)
	}
	snapshot, err := h.client.Snapshot(ctx, box.ID, v1.CreateSnapshot{Name: new("kept")})
	if err != nil {
		return err
	}
	if err := h.says(ctx, box.ID, "rm f; ls", "shared\n"); err != nil {
		return err
	}
	if _, err := h.client.Rollback(ctx, box.ID, "kept"); err != nil {
		return err
	}
	if err := h.says(ctx, box.ID, "cat f", "kept\n"); err != nil {
		return err
	}
	if _, err := h.client.Fork(ctx, box.ID, v1.ForkSandbox{}); err != nil {
		return err
	}
	archive, err := h.client.ExportSnapshot(ctx, snapshot.ID)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, archive)
	return errors.Join(err, archive.Close(), h.client.DeleteSnapshot(ctx, snapshot.ID), h.deleteAll(ctx), h.client.DeleteVolume(ctx, "shared"))
}

// bounding returns the names of a bounding set, sorted.
func bounding(t *testing.T, status []byte) []string {
	t.Helper()
	_, rest, _ := strings.Cut(string(status), "CapBnd:\t")
	digits, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for n, name := range capabilityNames {
		if set&(1<<n) != 0 {
			names = append(names, "CAP_"+name)
		}
	}
	slices.Sort(names)
	return names
}

// capabilityNames are in the order of their numbers.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
	SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
	WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// Nothing in the list is there for nothing: without any one of them something that users have does not work.
// Two are for images alone, whose files may have capabilities and set-group-id bits, and are not tried here.
func TestTheServiceNeedsEachOfItsRights(t *testing.T) {
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
	for _, without := range unit(t, "CapabilityBoundingSet") {
		if without == "CAP_SETFCAP" || without == "CAP_FSETID" {
			continue
		}
		t.Run(without, func(t *testing.T) {
			build, _ := confined(t, without)
			h := hostIn(t, t.TempDir(), "127.0.0.1:0")
			h.build = build
			defer func() { // by a server that can
				if h.client != nil {
					h.kill()
				}
				h.build = program
				h.start()
				h.sweep()
			}()
			err := h.begin()
			if err == nil {
				err = h.life(t.Context())
			}
			if err == nil {
				t.Error("all works without it: the list has one too many")
			}
			t.Logf("%.200v", err)
		})
	}
}

// systemd itself finds no mistake in the service, and its exposure is no higher than docs/service.md says.
func TestSystemdFindsNoMistakeInTheService(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("this host has no systemd-analyze (package systemd)")
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sandpit.service")
	if err := os.WriteFile(file, bytes.Replace(b, []byte("/usr/local/bin/sandpit"), []byte(path), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=55", file).CombinedOutput()
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Log(lines[len(lines)-1])
}

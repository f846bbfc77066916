// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runc runs a command by `runc run`, in an overlay of its own over the image
// that sandpit's sandboxes share. Only the run is timed: the overlay is mounted
// and config.json written before, as if an engine had them ready. The
// configuration is what `runc spec` gives, with sandpit's default limits, a
// writable root and a cgroup namespace. It is less than sandpit does: no seccomp
// filter, no user namespace and no daemon that records.
type runc struct {
	parts   peerParts
	version string
	spec    map[string]any // of `runc spec`
	thread  *private
	n       int
}

func openRunc(ctx context.Context, parts peerParts) (_ Peer, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root")
	}
	if err := installRunc(ctx); err != nil {
		return nil, err
	}
	r := &runc{parts: parts}
	out, err := exec.CommandContext(ctx, "runc", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("runc --version: %w", err)
	}
	r.version, _, _ = strings.Cut(string(out), "\n")
	if err := os.MkdirAll(parts.dir, 0o700); err != nil {
		return nil, err
	}
	spec := exec.CommandContext(ctx, "runc", "spec")
	spec.Dir = parts.dir
	if out, err := spec.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("runc spec: %w: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(parts.dir, "config.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &r.spec); err != nil {
		return nil, fmt.Errorf("what runc spec wrote: %w", err)
	}
	if r.thread, err = newPrivate(); err != nil {
		return nil, err
	}
	if _, _, err := r.FirstCommand(ctx); err != nil { // does it work here at all
		r.thread.close()
		return nil, err
	}
	return r, nil
}

// installRunc installs Debian's package where there is none.
func installRunc(ctx context.Context) error {
	if _, err := exec.LookPath("runc"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("runc is not installed, and there is no apt-get to install it")
	}
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", "runc"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("runc is not installed, and apt-get %s failed: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	return nil
}

func (r *runc) Version() string { return r.version }

func (r *runc) Close() error {
	r.thread.close()
	return nil
}

func (r *runc) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	r.n++
	id := "sandpit-bench-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(r.n)
	dir := filepath.Join(r.parts.dir, id)
	err = r.thread.do(func() error {
		merged, err := r.prepare(dir, id)
		defer func() {
			_ = unix.Unmount(merged, unix.MNT_DETACH) // nothing is mounted where prepare failed
			_ = os.RemoveAll(dir)
		}()
		if err != nil {
			return err
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, "runc", "--root", filepath.Join(r.parts.dir, "state"), "run", "--bundle", dir, id)
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		if err := cmd.Run(); err != nil {
			// It may have left a container.
			_ = exec.Command("runc", "--root", filepath.Join(r.parts.dir, "state"), "delete", "--force", id).Run()
			return fmt.Errorf("runc run: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
		took = time.Since(began)
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return nil
	})
	return took, cpu, err
}

// prepare makes a bundle in dir, with the overlay at the path that it gives.
func (r *runc) prepare(dir, id string) (merged string, err error) {
	merged = filepath.Join(dir, "rootfs")
	for _, d := range []string{"upper", "work", "rootfs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return merged, err
		}
	}
	options := "lowerdir=" + r.parts.root + ",upperdir=" + filepath.Join(dir, "upper") + ",workdir=" + filepath.Join(dir, "work")
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return merged, fmt.Errorf("mount the overlay: %w", err)
	}
	b, err := json.Marshal(r.config(id))
	if err != nil {
		return merged, err
	}
	return merged, os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600)
}

// config lays what differs over what runc itself proposes.
func (r *runc) config(id string) map[string]any {
	linux := overlaid(r.spec["linux"], map[string]any{
		"cgroupsPath": "/" + id,
		"resources": overlaid(sub(r.spec, "linux", "resources"), map[string]any{
			"memory": map[string]any{"limit": 512 << 20, "swap": 512 << 20},
			"cpu":    map[string]any{"quota": 100_000, "period": 100_000},
			"pids":   map[string]any{"limit": 256},
		}),
	})
	if have, ok := linux["namespaces"].([]any); ok {
		linux["namespaces"] = append(have[:len(have):len(have)], map[string]any{"type": "cgroup"})
	}
	return overlaid(r.spec, map[string]any{
		"hostname": "sandbox",
		"root":     map[string]any{"path": "rootfs", "readonly": false},
		"process":  overlaid(r.spec["process"], map[string]any{"terminal": false, "args": []string{"/bin/true"}}),
		"linux":    linux,
	})
}

func sub(m map[string]any, names ...string) any {
	var at any = m
	for _, n := range names {
		inner, _ := at.(map[string]any)
		at = inner[n]
	}
	return at
}

// overlaid gives a copy of base, which is an object or nothing, with top's
// members over its own.
func overlaid(base any, top map[string]any) map[string]any {
	out := map[string]any{}
	if b, ok := base.(map[string]any); ok {
		for k, v := range b {
			out[k] = v
		}
	}
	for k, v := range top {
		out[k] = v
	}
	return out
}

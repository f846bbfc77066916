// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Exists reports whether any hierarchy has the group.
func (t *Tree) Exists(group string) bool {
	for _, h := range t.hierarchies {
		if cgroupfs.Exists(h.dir, group) {
			return true
		}
	}
	return false
}

// Make makes the group in each hierarchy, with its limits. After an error it is fit for Remove.
func (t *Tree) Make(group string, l Limits) error {
	for i := range t.hierarchies {
		h := &t.hierarchies[i]
		if err := t.kernel.Mkdir(h.dir, group); err != nil {
			return fmt.Errorf("make %s at %s: %w", group, h.path, err)
		}
		if err := h.apply(t.kernel, group, l, true); err != nil {
			return err
		}
	}
	return nil
}

// JoinFiles opens, for writing, the tasks file of the group in each hierarchy. A thread
// that writes "0" to all of them, and what it forks from then on, is limited;
// its process is not. The right to write goes by who opened the file, so an
// agent can, and its commands must not get them. The caller closes them.
func (t *Tree) JoinFiles(group string) ([]*os.File, error) {
	var files []*os.File
	for _, h := range t.hierarchies {
		f, err := cgroupfs.Open(h.dir, group+"/tasks", unix.O_WRONLY)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// OOMFile opens the counter for counter.OOMKills of a group, where Memory is held.
func (t *Tree) OOMFile(group string) (*os.File, error) {
	return cgroupfs.Open(t.holder(Memory).dir, group+"/memory.oom_control", unix.O_RDONLY)
}

// PIDsFile opens the counter for counter.PIDsRefused of a group, where PIDs is held.
func (t *Tree) PIDsFile(group string) (*os.File, error) {
	return cgroupfs.Open(t.holder(PIDs).dir, group+"/pids.events", unix.O_RDONLY)
}

// Open opens a file of a group, read-only, in the hierarchy that holds the controller.
func (t *Tree) Open(group, controller, file string) (*os.File, error) {
	return cgroupfs.Open(t.holder(controller).dir, group+"/"+file, unix.O_RDONLY)
}

// Usage returns what a group uses now; zero where it is not counted.
func (t *Tree) Usage(group string) (memory, pids int64, err error) {
	for _, x := range []struct {
		controller, file string
		to               *int64
	}{{Memory, "memory.usage_in_bytes", &memory}, {PIDs, "pids.current", &pids}} {
		if h := t.holder(x.controller); h != nil {
			if *x.to, err = h.number(group, x.file); err != nil {
				return 0, 0, err
			}
		}
	}
	return memory, pids, nil
}

// MemoryPeak is the most that its commands held at once, where Memory is held.
func (t *Tree) MemoryPeak(group string) (int64, error) {
	return t.holder(Memory).number(group, "memory.max_usage_in_bytes")
}

func (h *hierarchy) number(group, file string) (int64, error) {
	text, err := cgroupfs.Read(h.dir, group+"/"+file)
	if err == nil {
		var n int64
		if n, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("read %s of %s: %w", file, group, err)
}

// Reclaim has the kernel take from a group what memory it can do without, where Memory is held.
func (t *Tree) Reclaim(ctx context.Context, group string) error {
	return cgroupfs.WriteUntil(ctx, t.holder(Memory).dir, group+"/memory.force_empty", []byte("0"))
}

// Remove removes the group from each hierarchy, once no thread is in it, for which it waits until
// ctx is done: it is EBUSY then. Removing what is gone is fine. With cgroup2 beside it the end of
// processes has been waited for, and the first try succeeds.
func (t *Tree) Remove(ctx context.Context, group string) error {
	for i := range t.hierarchies {
		if err := t.remove(ctx, &t.hierarchies[i], group); err != nil {
			return err
		}
	}
	return nil
}

// remove tries again while threads are there: v1 tells of no change.
func (t *Tree) remove(ctx context.Context, h *hierarchy, group string) error {
	const longest = 50 * time.Millisecond
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		err := t.kernel.Rmdir(h.dir, group)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		err = fmt.Errorf("remove %s at %s: %w", group, h.path, err)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

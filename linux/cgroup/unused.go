// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/v1"
)

// Unused is a namespace that no driver has open, and in which no process is.
type Unused struct {
	Namespace string
	Owner     string // see [Options]

	groups []heldGroup
}

// heldGroup is a namespace's group in one hierarchy, whose exclusive lock is held.
type heldGroup struct {
	parent, dir int
}

// EachUnused calls do for each namespace that is unused and has an owner, until do
// is false. No driver can open the namespace meanwhile.
func EachUnused(do func(*Unused) bool) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	var tops []topGroup
	defer func() {
		for _, t := range tops {
			unix.Close(t.dir)
		}
	}()
	var names []string
	for _, m := range cgroupfs.Mounts(string(text)) {
		dir, err := cgroupfs.Openat(unix.AT_FDCWD, m.Path+"/"+cgroupfs.Top, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cgroup: open %s/%s: %w", m.Path, cgroupfs.Top, err)
		}
		tops = append(tops, topGroup{dir: dir, v2: m.V2})
		below, err := cgroupfs.Children(dir, ".")
		if err != nil {
			return fmt.Errorf("cgroup: list %s/%s: %w", m.Path, cgroupfs.Top, err)
		}
		names = append(names, below...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		u := &Unused{Namespace: name}
		more := true
		if validName(name) && u.hold(tops) && u.Owner != "" {
			more = do(u)
		}
		u.release()
		if !more {
			return nil
		}
	}
	return nil
}

// topGroup is the open group of all namespaces in one hierarchy.
type topGroup struct {
	dir int
	v2  bool
}

// hold takes the locks of the namespace's groups. It is false if the namespace is in use, or if
// that cannot be told.
func (u *Unused) hold(tops []topGroup) bool {
	for _, t := range tops {
		dir, err := cgroupfs.Openat(t.dir, u.Namespace, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return false
		}
		u.groups = append(u.groups, heldGroup{parent: t.dir, dir: dir})
		if cgroupfs.Lock(dir, unix.LOCK_EX) != nil {
			return false
		}
		owner := cgroupfs.Owner(dir)
		if owner != "" && u.Owner != "" && owner != u.Owner {
			return false
		}
		u.Owner = cmp.Or(owner, u.Owner)
		if empty, err := t.empty(dir); err != nil || !empty {
			return false
		}
	}
	return true
}

func (u *Unused) release() {
	for _, g := range u.groups {
		unix.Close(g.dir)
	}
}

// empty reports whether no process is in an open group or below it.
func (t topGroup) empty(dir int) (bool, error) {
	if !t.v2 {
		return v1.Empty(dir)
	}
	text, err := cgroupfs.Read(dir, "cgroup.events")
	return strings.Contains(text, "populated 0"), err
}

// maxBelow is deeper than groups of ours are.
const maxBelow = 8

// Remove removes the namespace's groups. The kernel refuses one into which a process came
// meanwhile.
func (u *Unused) Remove() error {
	for _, g := range u.groups {
		if err := removeBelow(g.dir, 0); err != nil {
			return fmt.Errorf("cgroup: remove %s: %w", u.Namespace, err)
		}
		if err := (cgroupfs.System{}).Rmdir(g.parent, u.Namespace); err != nil {
			return fmt.Errorf("cgroup: remove %s: %w", u.Namespace, err)
		}
	}
	return nil
}

func removeBelow(dir, depth int) error {
	names, err := cgroupfs.Children(dir, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if depth < maxBelow {
			child, err := cgroupfs.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			err = removeBelow(child, depth+1)
			unix.Close(child)
			if err != nil {
				return err
			}
		}
		if err := (cgroupfs.System{}).Rmdir(dir, name); err != nil {
			return err
		}
	}
	return nil
}

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
	"time"

	"golang.org/x/sys/unix"
)

// Each open driver holds a shared lock of its namespace's group in each hierarchy. Whoever has
// the exclusive lock knows that no server uses the namespace, in whatever container it runs, and
// that none begins to.

// ownerMark is the attribute of a namespace's group that has [Options].Owner. A host that
// refuses it, as a container's may, keeps the groups until somebody removes them.
const ownerMark = "trusted.sandpit.owner"

// maxOwner is the longest path.
const maxOwner = unix.PathMax

func mark(dir int, owner string) {
	if owner != "" {
		_ = again(func() error { return unix.Fsetxattr(dir, ownerMark, []byte(owner), 0) })
	}
}

// markOf returns the mark of an open group, "" where it has none.
func markOf(dir int) string {
	b := make([]byte, maxOwner)
	n, err := unix.Fgetxattr(dir, ownerMark, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

func lock(dir, how int) error {
	return again(func() error { return unix.Flock(dir, how|unix.LOCK_NB) })
}

// Whoever looks whether a namespace is unused has its exclusive lock for so long at most.
const patienceToLock, pauseToLock = 2 * time.Second, 2 * time.Millisecond

// alone takes the exclusive lock of an open directory, unless another driver has it open.
func alone(dir int) bool {
	for deadline := time.Now().Add(patienceToLock); ; {
		if lock(dir, unix.LOCK_EX) == nil {
			return true
		}
		if lock(dir, unix.LOCK_SH) == nil { // a driver's, or somebody has just finished looking
			return lock(dir, unix.LOCK_EX) == nil
		}
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(pauseToLock)
	}
}

// share takes the shared lock of the open directory dir, whose path below root is path. It is
// ENOENT if the directory was removed before.
func share(root int, path string, dir int) error {
	for deadline := time.Now().Add(patienceToLock); ; {
		err := lock(dir, unix.LOCK_SH)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		<-time.After(pauseToLock) // whoever has the exclusive lock is removing the namespace
	}
	var open, there unix.Stat_t
	if err := unix.Fstat(dir, &open); err != nil {
		return err
	}
	if err := unix.Fstatat(root, path, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if open.Ino != there.Ino {
		return unix.ENOENT
	}
	return nil
}

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

// EachUnused calls do for each namespace that nobody uses and that says whose it is, until do
// is false. No driver can open the namespace meanwhile.
func EachUnused(do func(*Unused) bool) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	var trees []tree
	defer func() {
		for _, t := range trees {
			unix.Close(t.dir)
		}
	}()
	var names []string
	for _, m := range mounts(string(text)) {
		dir, err := openat(unix.AT_FDCWD, m.path+"/"+top, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cgroup: open %s/%s: %w", m.path, top, err)
		}
		trees = append(trees, tree{dir: dir, v2: m.v2})
		below, err := children(dir, ".")
		if err != nil {
			return fmt.Errorf("cgroup: list %s/%s: %w", m.path, top, err)
		}
		names = append(names, below...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		u := &Unused{Namespace: name}
		more := true
		if validName(name) && u.hold(trees) && u.Owner != "" {
			more = do(u)
		}
		u.release()
		if !more {
			return nil
		}
	}
	return nil
}

// tree is the open group of all namespaces in one hierarchy.
type tree struct {
	dir int
	v2  bool
}

// hold takes the locks of the namespace's groups. It is false if the namespace is in use, or if
// that cannot be told.
func (u *Unused) hold(trees []tree) bool {
	for _, t := range trees {
		dir, err := openat(t.dir, u.Namespace, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return false
		}
		u.groups = append(u.groups, heldGroup{parent: t.dir, dir: dir})
		if lock(dir, unix.LOCK_EX) != nil {
			return false
		}
		owner := markOf(dir)
		if owner != "" && u.Owner != "" && owner != u.Owner {
			return false
		}
		u.Owner = cmp.Or(owner, u.Owner)
		if empty, err := vacantBelow(dir, t.v2, 0); err != nil || !empty {
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

// maxBelow is how deep groups of ours are, and more.
const maxBelow = 8

// vacantBelow reports whether no process is in an open group or below it.
func vacantBelow(dir int, v2 bool, depth int) (bool, error) {
	if v2 {
		text, err := read(dir, "cgroup.events")
		return strings.Contains(text, "populated 0"), err
	}
	if text, err := read(dir, "tasks"); err != nil || strings.TrimSpace(text) != "" {
		return false, err
	}
	names, err := children(dir, ".")
	if err != nil || depth == maxBelow {
		return false, err
	}
	for _, name := range names {
		child, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return false, err
		}
		empty, err := vacantBelow(child, v2, depth+1)
		unix.Close(child)
		if err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// Remove removes the namespace's groups. The kernel refuses one into which a process came
// meanwhile.
func (u *Unused) Remove() error {
	for _, g := range u.groups {
		if err := removeBelow(g.dir, 0); err != nil {
			return fmt.Errorf("cgroup: remove %s: %w", u.Namespace, err)
		}
		if err := (system{}).rmdirat(g.parent, u.Namespace); err != nil {
			return fmt.Errorf("cgroup: remove %s: %w", u.Namespace, err)
		}
	}
	return nil
}

func removeBelow(dir, depth int) error {
	names, err := children(dir, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if depth < maxBelow {
			child, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			err = removeBelow(child, depth+1)
			unix.Close(child)
			if err != nil {
				return err
			}
		}
		if err := (system{}).rmdirat(dir, name); err != nil {
			return err
		}
	}
	return nil
}

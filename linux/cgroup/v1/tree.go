// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// The controllers that limit something of ours.
const (
	CPU    = "cpu"
	Memory = "memory"
	PIDs   = "pids"
)

// Tree is the groups of one namespace in all hierarchies of v1 controllers. All methods are safe
// for concurrent use on different ids.
type Tree struct {
	kernel      cgroupfs.Kernel
	namespace   string
	owner       string
	hierarchies []hierarchy
	agents      agents
}

// hierarchy is the directory sandpit/NAMESPACE of one mounted hierarchy.
type hierarchy struct {
	path        string // where it is mounted
	dir         int
	controllers []string
	swap        bool
	sockets     bool // it limits what sockets hold, beside memory
}

// New returns a tree without hierarchies. owner is whom the namespace is of. Each agent has the
// limits.
func New(k cgroupfs.Kernel, namespace, owner string, limits Limits) *Tree {
	return &Tree{kernel: k, namespace: namespace, owner: owner, agents: agents{limits: limits, taken: map[int]bool{}}}
}

// Add makes our groups in the hierarchy m and uses its controllers, or says why it cannot. swap
// reports whether a limit of memory leaves nothing to swap.
func (t *Tree) Add(m cgroupfs.Mount) (swap bool, err error) {
	shared := true
	root, dir, err := cgroupfs.OpenNamespace(t.kernel, m.Path, t.namespace, t.owner, func(dir int) {
		shared = false
		t.removeLeft(dir)
	})
	if err != nil {
		return false, err
	}
	unix.Close(root)
	// A group inherits this from its parent when it is made: with 0 here
	// no group of ours ever runs the host's release agent.
	if err := t.kernel.Write(dir, "notify_on_release", []byte("0")); err != nil {
		unix.Close(dir)
		return false, err
	}
	h := hierarchy{path: m.Path, dir: dir, controllers: m.Controllers}
	if slices.Contains(m.Controllers, Memory) {
		h.swap = cgroupfs.Exists(dir, "memory.memsw.limit_in_bytes")
		h.sockets = cgroupfs.Exists(dir, socketLimit)
	}
	t.hierarchies = append(t.hierarchies, h)
	t.noteAgents(&h, shared)
	return h.swap, nil
}

// own begins the names of groups that are no sandbox's: those of agents, and what earlier versions
// made ahead. No id begins so.
const own = "_"

// removeLeft removes what an earlier server left in the namespace's group that is open as dir, but
// for groups that have processes.
func (t *Tree) removeLeft(dir int) {
	names, _ := cgroupfs.Children(dir, ".")
	for _, name := range names {
		if strings.HasPrefix(name, own) {
			_ = t.kernel.Rmdir(dir, name)
		}
	}
}

// Close removes the parent directories that are empty, unless another driver has them open, and
// closes the rest. Twice is fine.
func (t *Tree) Close() error {
	var errs []error
	for i := range t.hierarchies {
		h := &t.hierarchies[i]
		errs = append(errs, cgroupfs.CloseNamespace(t.kernel, h.path, t.namespace, h.dir, func() error { return t.removeAgents(h) }))
	}
	t.hierarchies = nil
	return errors.Join(errs...)
}

// Holds reports whether a controller is v1's here.
func (t *Tree) Holds(controller string) bool { return t.holder(controller) != nil }

func (t *Tree) holder(controller string) *hierarchy {
	for i := range t.hierarchies {
		if slices.Contains(t.hierarchies[i].controllers, controller) {
			return &t.hierarchies[i]
		}
	}
	return nil
}

// Names lists the groups of all hierarchies, some twice, also those of agents.
func (t *Tree) Names() ([]string, error) {
	var names []string
	for _, h := range t.hierarchies {
		more, err := cgroupfs.Children(h.dir, ".")
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", h.path, err)
		}
		names = append(names, more...)
	}
	return names, nil
}

// Empty reports whether no process is in an open group of any v1 hierarchy, or below it.
func Empty(dir int) (bool, error) { return emptyBelow(dir, 0) }

// maxBelow is deeper than groups of ours are.
const maxBelow = 8

func emptyBelow(dir, depth int) (bool, error) {
	if text, err := cgroupfs.Read(dir, "tasks"); err != nil || strings.TrimSpace(text) != "" {
		return false, err
	}
	names, err := cgroupfs.Children(dir, ".")
	if err != nil || depth == maxBelow {
		return false, err
	}
	for _, name := range names {
		child, err := cgroupfs.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return false, err
		}
		empty, err := emptyBelow(child, depth+1)
		unix.Close(child)
		if err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
)

// spare begins the names of groups that are no sandbox's yet. No id begins so.
const spare = "_spare"

// maxSpares bounds what is kept ready, a few hundred kilobytes of the kernel's each.
const maxSpares = 8

// spares are sets of v1 groups, one group of the same name in each hierarchy, made before
// a sandbox is there to use them: a rename takes 0.02 ms where making one takes 0.05 to
// 0.2, most for memory. cgroup2 renames nothing.
type spares struct {
	mu    sync.Mutex
	made  int // the number in the next one's name
	names []string
}

// MakeSpare makes a set of v1 groups for a [Group.Prepare] to come, unless enough are
// ready. None is a sandbox's, none has limits, and Close removes them.
func (d *Driver) MakeSpare() error {
	s := &d.spares
	s.mu.Lock()
	if len(d.v1) == 0 || len(s.names) >= maxSpares {
		s.mu.Unlock()
		return nil
	}
	s.made++
	name := spare + strconv.Itoa(s.made)
	s.mu.Unlock()
	for i := range d.v1 {
		if err := d.kernel.mkdirat(d.v1[i].dir, name); err != nil {
			d.dropSpare(name)
			return fmt.Errorf("cgroup: make %s: %w", name, err)
		}
	}
	s.mu.Lock()
	s.names = append(s.names, name)
	s.mu.Unlock()
	return nil
}

// takeSpare gives the name of a set, which is the caller's from then on; "" if there is none.
func (d *Driver) takeSpare() string {
	s := &d.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.names)
	if n == 0 {
		return ""
	}
	name := s.names[n-1]
	s.names = s.names[:n-1]
	return name
}

func (d *Driver) dropSpare(name string) {
	for i := range d.v1 {
		_ = d.kernel.rmdirat(d.v1[i].dir, name)
	}
}

// claim makes the group id of a v1 hierarchy, of the spare one where there is one.
func (d *Driver) claim(h *hierarchy, name, id string) error {
	if name != "" {
		err := d.kernel.renameat(h.dir, name, id)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return d.kernel.mkdirat(h.dir, id)
}

// removeSpares removes those of a hierarchy, an earlier server's too.
func (d *Driver) removeSpares(h *hierarchy) {
	names, _ := children(h.dir, ".")
	for _, name := range names {
		if strings.HasPrefix(name, spare) {
			_ = d.kernel.rmdirat(h.dir, name)
		}
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// How a directory is read: names at a time, names that are looked at in all, and entries of one Item.
const (
	nameBatch   = 256
	maxScan     = 1 << 20
	itemEntries = 32 << 10 // bytes
	keptNames   = 8 << 20  // bytes of names, of which twice as many may be held while they are read
	maxName     = 255
)

// List sends a directory, sorted by name, up to a limit.
func (s *Service) List(c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	limit := req.Limit
	switch {
	case limit == 0:
		limit = wire.DefaultListSize
	case limit < 0 || limit > wire.MaxListSize:
		return fault.InvalidField("limit", "%d is outside 1 to %d", limit, wire.MaxListSize)
	}
	var fd int
	var st unix.Stat_t
	v.Do(func() { fd, st, err = s.openListed(p) })
	if err != nil {
		return fileFault(v, "list", p, err)
	}
	dir := os.NewFile(uintptr(fd), "directory")
	defer dir.Close()
	after := wire.UnescapeName(req.Beyond)
	if len(after) > maxName {
		return fault.InvalidField("after", "has %d bytes; a name has at most %d", len(after), maxName)
	}
	names, truncated, err := smallest(dir, limit, after)
	if err != nil {
		return fileFault(v, "list", p, err)
	}
	fi := describe(baseOf(shown(p)), &st)
	fi.Path = shown(p)
	if err := c.Send(wire.Reply, fi); err != nil {
		return err
	}
	more, err := sendEntries(c, v, fd, names)
	if err != nil {
		return err
	}
	return c.Send(wire.Done, wire.Listing{Truncated: truncated || more})
}

// openListed runs within Do.
func (s *Service) openListed(p string) (fd int, st unix.Stat_t, err error) {
	look, err := s.openDir(p)
	if err != nil {
		return -1, st, err
	}
	_ = unix.Close(look)
	fd, err = s.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return -1, st, err
	}
	if err = dirs.CheckStorage(fd); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// smallest reads the names of a directory that come after one, and keeps the first limit of
// them in order. Its memory is bounded by the limit and by keptNames, not by the directory.
func smallest(dir *os.File, limit int, after string) (names []string, truncated bool, err error) {
	held := 0 // bytes of names
	for seen := 0; ; {
		batch, err := dir.Readdirnames(nameBatch)
		for _, name := range batch {
			if name > after {
				names = append(names, name)
				held += len(name)
			}
		}
		seen += len(batch)
		if len(names) >= 2*limit+nameBatch || held > 2*keptNames {
			slices.Sort(names)
			all := len(names)
			names, held = first(names, limit)
			truncated = truncated || len(names) < all
		}
		if len(batch) == 0 || err != nil {
			break
		}
		if seen > maxScan {
			truncated = true
			break
		}
	}
	slices.Sort(names)
	all := len(names)
	names, _ = first(names, limit)
	return names, truncated || len(names) < all, nil
}

// first returns the first of some sorted names, within the limit and keptNames, and how many
// bytes they have.
func first(names []string, limit int) ([]string, int) {
	n, held := 0, 0
	for n < min(limit, len(names)) && held+len(names[n]) <= keptNames {
		held += len(names[n])
		n++
	}
	clear(names[n:])
	return names[:n], held
}

// sendEntries looks at the names, in batches so that the view is not held for
// long, and sends what it sees, up to a bound in bytes: more reports whether it was reached. What
// was removed meanwhile is left out.
func sendEntries(c *call.Conn, v view.View, fd int, names []string) (more bool, err error) {
	b := []byte{'['}
	sent := 0
	flush := func() error {
		if len(b) == 1 {
			return nil
		}
		b = append(b, ']')
		frame := wire.Append(nil, wire.Item, b)
		b = b[:1]
		_, err := c.Write(frame)
		return err
	}
	for batch := range slices.Chunk(names, nameBatch) {
		entries := make([]wire.FileInfo, 0, len(batch))
		v.Do(func() {
			for _, name := range batch {
				if strings.HasPrefix(name, tempPrefix) && len(name) == len(tempPrefix)+tempRandom {
					continue // an upload that is not complete
				}
				if fi, err := describeAt(fd, name); err == nil {
					entries = append(entries, fi)
				}
			}
		})
		for _, fi := range entries {
			text, err := json.Marshal(fi)
			if err != nil {
				return false, err
			}
			if sent += len(text); sent > wire.MaxListBytes {
				return true, flush()
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, text...)
			if len(b) >= itemEntries {
				if err := flush(); err != nil {
					return false, err
				}
			}
		}
	}
	return false, flush()
}

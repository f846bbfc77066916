// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/wire"
)

// logIDs lists the processes that have a log on disk, and tells other, if that is not nil,
// of every other file.
func (s *Server) logIDs(other func(name string)) []string {
	fd, err := unix.Openat(s.logDir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.o.Logger.Error("reading the log directory", "error", err)
		return nil
	}
	dir := os.NewFile(uintptr(fd), "log")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		s.o.Logger.Error("reading the log directory", "error", err)
	}
	ids := names[:0]
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".log"); ok && validProcessID(id) {
			ids = append(ids, id)
		} else if other != nil {
			other(name)
		}
	}
	return ids
}

// records lists all processes, oldest first; with running only those that have not
// ended, whose records are all in memory.
func (s *Server) records(running bool) []wire.Record {
	var all []wire.Record
	seen := make(map[string]bool)
	s.mu.Lock()
	live := make([]*process, 0, len(s.procs))
	for id, p := range s.procs {
		seen[id] = true
		if p != nil {
			live = append(live, p)
		}
	}
	s.mu.Unlock()
	for _, p := range live {
		if rec := p.snapshot(); !running || rec.State == wire.Running {
			all = append(all, rec.Brief())
		}
	}
	if !running {
		for _, id := range s.logIDs(nil) {
			if seen[id] {
				continue
			}
			if l, err := s.openLog(id); err == nil {
				all = append(all, l.rec.Brief())
				l.close()
			}
		}
	}
	slices.SortFunc(all, func(a, b wire.Record) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// record finds one process, in memory or on disk.
func (s *Server) record(id string) (wire.Record, error) {
	if p := s.find(id); p != nil {
		return p.snapshot(), nil
	}
	l, err := s.openLog(id)
	if err != nil {
		return wire.Record{}, err
	}
	defer l.close()
	return l.rec, nil
}

// find returns a process that is in memory, or nil.
func (s *Server) find(id string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.procs[id]
}

func (s *Server) serveProcesses(c *call.Conn, req *wire.Request) error {
	recs := s.records(req.Running)
	b, err := wire.AppendJSON(nil, wire.Reply, struct{}{})
	if err != nil {
		return err
	}
	for _, rec := range recs {
		if b, err = wire.AppendJSON(b, wire.Item, rec); err != nil {
			return err
		}
		if len(b) >= wire.MaxData {
			if _, err := c.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err = c.Write(wire.Append(b, wire.Done, nil))
	return err
}

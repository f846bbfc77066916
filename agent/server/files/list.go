// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	d, err := s.of(req)
	if err != nil {
		return err
	}
	limit, err := listLimit(req.Limit)
	if err != nil {
		return err
	}
	if err := d.open(s, "list"); err != nil {
		return err
	}
	dir := os.NewFile(uintptr(d.fd), "directory")
	defer dir.Close()
	after := wire.UnescapeName(req.Beyond)
	if len(after) > maxName {
		return fault.InvalidField("after", "has %d bytes; a name has at most %d", len(after), maxName)
	}
	names, truncated, err := smallest(dir, limit, keptNames, func(name string) bool { return name > after })
	if err != nil {
		return fileFault(d.v, "list", d.path, err)
	}
	if err := c.Send(wire.Reply, d.info()); err != nil {
		return err
	}
	more, err := s.sendEntries(c, d.v, d.fd, names, req.Compact)
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

// smallest reads the names of a directory that are wanted, and keeps the first limit of
// them in order. Its memory is bounded by the limit and by room, and not by the directory: of
// names it holds twice room bytes while it reads.
func smallest(dir *os.File, limit, room int, wanted func(name string) bool) (names []string, truncated bool, err error) {
	held := 0 // bytes of names
	for seen := 0; ; {
		batch, err := dir.Readdirnames(nameBatch)
		for _, name := range batch {
			if wanted(name) {
				names = append(names, name)
				held += len(name)
			}
		}
		seen += len(batch)
		if len(names) >= 2*limit+nameBatch || held > 2*room {
			slices.Sort(names)
			all := len(names)
			names, held = first(names, limit, room)
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
	names, _ = first(names, limit, room)
	return names, truncated || len(names) < all, nil
}

// first returns the first of some sorted names, within the limit and room, and how many
// bytes they have.
func first(names []string, limit, room int) ([]string, int) {
	n, held := 0, 0
	for n < min(limit, len(names)) && held+len(names[n]) <= room {
		held += len(names[n])
		n++
	}
	clear(names[n:])
	return names[:n], held
}

// sendEntries looks at the names, in batches so that the view is not held for
// long, and sends what it sees, up to a bound in bytes: more reports whether it was reached. What
// was removed meanwhile is left out.
//
// Batches are looked at while those before are sent. To look at a file takes most of the time of a long list, so a
// second thread looks, too, where the user may search the directory: it sees what the user would.
func (s *Service) sendEntries(c *call.Conn, v view.View, fd int, names []string, compact bool) (more bool, err error) {
	out := entryWriter{c: c, names: s.names(v), compact: compact}
	l := lookers{s: s, v: v, dir: fd, names: names, stop: make(chan struct{})}
	defer l.end()
	l.start()
	for _, batch := range l.looked {
		entries, ok := <-batch
		if !ok {
			return false, net.ErrClosed // the view ended the one that looked
		}
		<-l.ahead
		for i := range entries {
			if more, err := out.add(&entries[i]); more || err != nil {
				return more, errors.Join(err, out.flush())
			}
		}
	}
	return false, out.flush()
}

// lookers look at the files of a list, some batches ahead of who sends them.
type lookers struct {
	s     *Service
	v     view.View
	dir   int
	names []string

	looked []chan []wire.FileInfo // of each batch; closed: it was not looked at
	next   atomic.Int64
	ahead  chan struct{} // has one for each batch that was begun and not taken
	stop   chan struct{}
	all    sync.WaitGroup
	both   bool // two threads look
}

const (
	// alone is how many batches one thread looks at by itself.
	alone = 8
	// mostAhead bounds the entries that are held.
	mostAhead = 32
)

func (l *lookers) start() {
	l.looked = make([]chan []wire.FileInfo, (len(l.names)+nameBatch-1)/nameBatch)
	for i := range l.looked {
		l.looked[i] = make(chan []wire.FileInfo, 1)
	}
	l.ahead = make(chan struct{}, mostAhead)
	l.all.Go(func() { l.look(l.v.Do) })
	if l.both = len(l.looked) > alone; l.both {
		l.s.spread.begin()
		l.all.Go(func() { l.look(direct(l.v, l.dir)) })
	}
}

// end ends the looking, and waits for it.
func (l *lookers) end() {
	close(l.stop)
	l.all.Wait()
	if l.both {
		l.s.spread.end()
	}
}

func (l *lookers) look(do func(func())) {
	at := len(l.looked) // the batch that is being looked at
	defer func() {
		// A view that cannot act ends this goroutine within Do.
		for ; at < len(l.looked); at = int(l.next.Add(1)) - 1 {
			close(l.looked[at])
		}
	}()
	for {
		select {
		case l.ahead <- struct{}{}:
		case <-l.stop:
			return
		}
		i := int(l.next.Add(1)) - 1
		if i >= len(l.looked) {
			<-l.ahead
			return
		}
		at = i
		entries := l.s.describeBatch(l.v, do, l.dir, l.names[i*nameBatch:min((i+1)*nameBatch, len(l.names))])
		at = len(l.looked)
		l.looked[i] <- entries
	}
}

// direct returns what runs a look at a directory's files: at once, where the user may search the
// directory, and else as the user.
func direct(v view.View, fd int) (do func(func())) {
	var err error
	v.Do(func() { err = unix.Faccessat2(fd, ".", unix.X_OK, unix.AT_EACCESS) })
	if err != nil {
		return v.Do
	}
	return func(fn func()) { fn() }
}

// describeBatch looks at files of a directory. What links lead to is for the view alone.
func (s *Service) describeBatch(v view.View, do func(func()), dir int, names []string) []wire.FileInfo {
	entries := make([]wire.FileInfo, 0, len(names))
	links := false
	do(func() {
		for _, name := range names {
			if IsTemp(name) {
				continue // an upload that is not complete
			}
			var st unix.Stat_t
			if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			entries = append(entries, describe(name, &st))
			links = links || st.Mode&unix.S_IFMT == unix.S_IFLNK
		}
	})
	if links {
		v.Do(func() {
			for i := range entries {
				if entries[i].Type == wire.Symlink {
					s.readTarget(dir, wire.UnescapeName(entries[i].Name), &entries[i])
				}
			}
		})
	}
	return entries
}

// IsTemp reports whether a name is that of a file that is not complete.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && len(name) == len(tempPrefix)+tempRandom
}

// entryWriter sends the entries of a list.
type entryWriter struct {
	c       *call.Conn
	names   names
	compact bool
	b       []byte // a frame that is not complete
	sent    int
}

// add adds an entry: more reports that there is no room for it.
func (w *entryWriter) add(fi *wire.FileInfo) (more bool, err error) {
	w.names.add(fi)
	if len(w.b) >= itemEntries {
		if err := w.flush(); err != nil {
			return false, err
		}
	}
	if w.b == nil {
		w.b = make([]byte, 0, itemEntries+wire.MaxEntry)
	}
	if len(w.b) == 0 {
		w.b = append(w.b, make([]byte, wire.HeaderLen)...)
	}
	at := len(w.b)
	if w.compact {
		w.b = wire.AppendEntry(w.b, fi)
	} else {
		text, err := json.Marshal(fi)
		if err != nil {
			return false, err
		}
		if at == wire.HeaderLen {
			w.b = append(w.b, '[')
		} else {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, text...)
	}
	if w.sent += len(w.b) - at; w.sent > wire.MaxListBytes {
		w.b = w.b[:at]
		return true, nil
	}
	return false, nil
}

func (w *entryWriter) flush() error {
	if len(w.b) <= wire.HeaderLen {
		return nil
	}
	kind := wire.Data
	if !w.compact {
		kind = wire.Item
		w.b = append(w.b, ']')
	}
	wire.PutHeader(w.b, kind, len(w.b)-wire.HeaderLen)
	_, err := w.c.Write(w.b)
	w.b = w.b[:0]
	return err
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Files of accounts are the sandbox's own: whatever is in them, so much is read and kept of them.
const (
	maxAccountFile = 1 << 20
	maxAccounts    = 10_000
)

// accounts are the names that one file has for numbers, and the numbers of names.
type accounts struct {
	names   map[uint32]string
	numbers map[string]uint32
}

// accountFiles keeps what was read of the files of users and groups, until they change.
type accountFiles struct {
	mu   sync.Mutex
	kept map[accountFile]*keptAccounts // one for each file and view
}

type accountFile struct{ user, path string }

// names are those that files are shown with.
type names struct{ users, groups *accounts }

func (n names) add(fi *wire.FileInfo) {
	fi.Owner, fi.Group = n.users.names[fi.UID], n.groups.names[fi.GID]
}

// The files of users and groups.
const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// names reads the files of users and groups as far as the view's user may, or returns what is known of
// them. One that cannot be read has no names. It runs outside of Do.
func (s *Service) names(v view.View) names {
	var seen [2]unix.Stat_t
	v.Do(func() {
		for i, p := range [...]string{passwdFile, groupFile} {
			if fd, err := s.Open(p, unix.O_PATH); err == nil {
				_ = unix.Fstat(fd, &seen[i])
				_ = unix.Close(fd)
			}
		}
	})
	return names{s.accounts(v, passwdFile, &seen[0]), s.accounts(v, groupFile, &seen[1])}
}

// accounts reads a file of accounts, or returns what is known of the one that was seen.
func (s *Service) accounts(v view.View, p string, seen *unix.Stat_t) *accounts {
	if seen.Ino == 0 {
		return new(accounts)
	}
	key := accountFile{v.Identity().Name, p}
	s.known.mu.Lock()
	a := s.known.kept[key]
	s.known.mu.Unlock()
	if a != nil && a.same(seen) {
		return &a.accounts
	}
	var fd int
	var st unix.Stat_t
	var err error
	v.Do(func() { fd, st, err = s.openRegular(p, unix.O_RDONLY) })
	if err != nil {
		return new(accounts)
	}
	defer unix.Close(fd)
	a = &keptAccounts{readAccounts(fd), st}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	if s.known.kept == nil {
		s.known.kept = make(map[accountFile]*keptAccounts)
	}
	s.known.kept[key] = a
	return &a.accounts
}

// keptAccounts are accounts and the file that they were read of.
type keptAccounts struct {
	accounts
	st unix.Stat_t
}

func (a *keptAccounts) same(st *unix.Stat_t) bool {
	return a.st.Dev == st.Dev && a.st.Ino == st.Ino && a.st.Size == st.Size && a.st.Mtim == st.Mtim && a.st.Ctim == st.Ctim
}

// readAccounts reads the first bytes of a file of lines NAME:PASSWORD:NUMBER:…. The first line of a number
// names it, as with getpwuid(3).
func readAccounts(fd int) accounts {
	buf := make([]byte, maxAccountFile)
	n := 0
	for n < len(buf) {
		m, err := descriptor.File(fd).ReadAt(buf[n:], int64(n))
		n += m
		if err != nil {
			break
		}
	}
	a := accounts{names: make(map[uint32]string), numbers: make(map[string]uint32)}
	for line := range bytes.SplitSeq(buf[:n], []byte{'\n'}) {
		if len(a.numbers) == maxAccounts {
			break
		}
		name, rest, _ := bytes.Cut(line, []byte{':'})
		_, rest, _ = bytes.Cut(rest, []byte{':'})
		number, _, ok := bytes.Cut(rest, []byte{':'})
		id, err := strconv.ParseUint(string(number), 10, 32)
		if !ok || err != nil || id == noID || !isAccountName(name) {
			continue
		}
		if _, known := a.numbers[string(name)]; !known {
			a.numbers[string(name)] = uint32(id)
		}
		if _, known := a.names[uint32(id)]; !known {
			a.names[uint32(id)] = string(name)
		}
	}
	return a
}

// noID is what the system calls take for "leave it as it is".
const noID = 1<<32 - 1

// isAccountName refuses what nobody could tell from something else where it is shown.
func isAccountName(name []byte) bool {
	if len(name) == 0 || len(name) > wire.MaxAccountName || !utf8.Valid(name) {
		return false
	}
	for _, r := range string(name) {
		if !unicode.IsPrint(r) || r == ' ' || r == '/' {
			return false
		}
	}
	return true
}

// number returns what a name or number of an account stands for; -1 for none that is given.
func (a *accounts) number(field, text, file string) (int, error) {
	if text == "" {
		return -1, nil
	}
	if id, known := a.numbers[text]; known {
		return int(id), nil
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id >= noID {
		return -1, fault.InvalidField(field, "%q is neither a number nor a name of the sandbox's %s", message.Clip(text, 80), file).
			WithRemedy("cat %s in the sandbox shows the names", file)
	}
	return int(id), nil
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// MaxFile is how many bytes of a list are read.
const MaxFile = wire.MaxAccountsFile

// MaxID is the highest number of a user or a group: a sandbox has these and no others. The one above stands for none.
const MaxID = 65534

// An Entry is one account of the list.
type Entry struct {
	Name     string
	UID, GID uint32
	Home     string
	Shell    string // "": the list does not say
}

// Root opens the directory that stands for "/". The caller closes it.
func Root(dir string) (int, error) {
	return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// open opens a file of /etc, through no link.
func open(root int, name string, flags uint64) (int, error) {
	return dirs.Openat2(root, name, unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// read returns the contents of a list of accounts. The error of one that is missing is unix.ENOENT.
func read(root int, name string) ([]byte, error) {
	fd, err := open(root, name, unix.O_RDONLY)
	if err == unix.ENOENT {
		return nil, err
	}
	if err != nil {
		return nil, unreadable("/%s is not a plain file, or behind a link", name)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, unreadable("/%s is not a plain file", name)
	case st.Size > wire.MaxAccountsFile:
		return nil, unreadable("/%s has more than %d bytes", name, wire.MaxAccountsFile)
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		m, err := unix.Read(fd, data[n:])
		if err != nil {
			return nil, err
		}
		if m == 0 {
			return data[:n], nil
		}
		n += m
	}
	return data, nil
}

func unreadable(format string, args ...any) error {
	return fault.InvalidField("as_user", "the accounts of this sandbox cannot be read: "+format, args...).
		WithRemedy("put a plain file there, as root, or leave the user out")
}

// List returns the accounts of the sandbox, in the order of the file. Lines that are no account are
// passed over, and so is one whose number is not the sandbox's to have. A missing file has none.
func List(root int) ([]Entry, error) {
	data, err := read(root, "etc/passwd")
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Entry
	for line := range bytes.Lines(data) {
		if e, ok := parse(strings.TrimSuffix(string(line), "\n")); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

func parse(line string) (e Entry, ok bool) {
	f := strings.SplitN(line, ":", 8)
	if len(f) < 6 || f[0] == "" || len(f[0]) > wire.MaxUserName || len(f[5]) > wire.MaxPath || strings.ContainsRune(line, 0) {
		return e, false
	}
	for _, r := range f[0] {
		if r <= ' ' || r > '~' || r == '/' {
			return e, false
		}
	}
	uid, uok := number(f[2])
	gid, gok := number(f[3])
	e = Entry{Name: f[0], UID: uid, GID: gid, Home: f[5]}
	if len(f) > 6 {
		e.Shell = f[6]
	}
	return e, uok && gok
}

func number(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil && n <= MaxID && strconv.FormatUint(n, 10) == text
}

// Find returns the account of a name, or else of a number in decimal.
func Find(all []Entry, user string) (Entry, bool) {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == user })
	if i < 0 {
		uid, ok := number(user)
		if !ok {
			return Entry{}, false
		}
		if i = slices.IndexFunc(all, func(e Entry) bool { return e.UID == uid }); i < 0 {
			return Entry{}, false
		}
	}
	return all[i], true
}

// maxGroups is how many groups an account is in at most, beside its own.
const maxGroups = 64

// Groups returns the groups that an account is in, but for root's: that one comes with root's rights
// over files, whatever the sandbox's list says.
func Groups(root int, e Entry) ([]uint32, error) {
	groups := []uint32{e.GID}
	data, err := read(root, "etc/group")
	if err == unix.ENOENT {
		return groups, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 5)
		if len(f) < 4 || len(groups) > maxGroups {
			continue
		}
		gid, ok := number(f[2])
		if ok && gid != 0 && !slices.Contains(groups, gid) && slices.Contains(strings.Split(f[3], ","), e.Name) {
			groups = append(groups, gid)
		}
	}
	return groups, nil
}

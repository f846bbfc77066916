// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// A Renaming is what the lists say once an account is called otherwise. The zero value changes nothing.
type Renaming struct{ passwd, group [][]string }

// Rename has the account of uid called name, with another home, in the sandbox's lists.
func Rename(root int, uid uint32, name, home string) error {
	r, err := Plan(root, uid, name, home)
	if err != nil {
		return err
	}
	return r.Write(root)
}

// Plan returns what Rename writes. A name that is another account's is fault.Invalid. Where there is no list
// nothing is to be done: such a root knows no names.
func Plan(root int, uid uint32, name, home string) (r Renaming, err error) {
	data, err := read(root, "etc/passwd")
	if err == unix.ENOENT {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	lines := split(data)
	own := -1
	for i, f := range lines {
		switch {
		case len(f) < 3:
		case f[2] == strconv.Itoa(int(uid)) && own < 0:
			own = i
		case f[0] == name && f[2] == strconv.Itoa(int(uid)):
			lines[i] = nil // the first line of a number has its name
		case f[0] == name:
			return r, fault.InvalidField("account.name", "%q is the user %.20q of the image", name, f[2]).WithRemedy("choose another name")
		}
	}
	if own < 0 {
		r.passwd = append(lines, []string{name, "x", fmt.Sprint(uid), fmt.Sprint(uid), "", home, "/bin/sh"})
		return r, nil
	}
	f := lines[own]
	for len(f) < 7 {
		f = append(f, "")
	}
	old := f[0]
	if old == name && f[5] == home {
		return r, nil
	}
	if old != name && f[1] == "x" {
		f[1] = "*" // the list of passwords does not know the name, and programs ask it where it is said to
	}
	f[0], f[5] = name, home
	lines[own] = f
	r.passwd = lines
	if old != name {
		r.group = renamedGroups(root, old, name)
	}
	return r, nil
}

// Write changes the files, each at once: who reads one meanwhile, or after the sandbox was killed in the middle,
// finds it as it was or as it is to be.
func (r Renaming) Write(root int) error {
	return r.Each(func(name, text string) error {
		if err := replace(root, name, text); err != nil {
			return fault.Wrap(fault.Full, err, "the account cannot be written to /etc/%s", name).WithRemedy("give the sandbox a larger disk")
		}
		return nil
	})
}

// Each calls write with each file of /etc that changes, and what is to be in it, up to the first error.
func (r Renaming) Each(write func(name, text string) error) error {
	for _, file := range []struct {
		name  string
		lines [][]string
	}{{"passwd", r.passwd}, {"group", r.group}} {
		if file.lines == nil {
			continue
		}
		var b strings.Builder
		for _, f := range file.lines {
			if f != nil {
				b.WriteString(strings.Join(f, ":") + "\n")
			}
		}
		if err := write(file.name, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// renamedGroups has the group that is called as the account was called as the account, and the account called
// name where it is a member. A list that cannot be read, or has the name already, says nothing that matters here.
func renamedGroups(root int, old, name string) [][]string {
	data, err := read(root, "etc/group")
	if err != nil {
		return nil
	}
	lines := split(data)
	taken := slices.ContainsFunc(lines, func(f []string) bool { return len(f) > 0 && f[0] == name })
	changed := false
	for _, f := range lines {
		if len(f) > 0 && f[0] == old && !taken {
			f[0], changed = name, true
		}
		if len(f) < 4 {
			continue
		}
		list := strings.Split(f[3], ",")
		if i := slices.Index(list, old); i >= 0 {
			list[i], changed = name, true
			f[3] = strings.Join(list, ",")
		}
	}
	if !changed {
		return nil
	}
	return lines
}

// split cuts a file into lines, and those into fields. An empty line has none.
func split(data []byte) (lines [][]string) {
	for line := range strings.Lines(string(data)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), ":"))
	}
	return lines
}

// temporary is what a list is written as before it is in its place.
const temporary = ".sandpit-"

// replace puts a list in the place of one in /etc, with the mode and the owner of that one.
func replace(root int, name, text string) error {
	dir, err := directory(root, "etc")
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	var was unix.Stat_t
	if err := unix.Fstatat(dir, name, &was, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, temporary+name, 0); err != nil && err != unix.ENOENT { // of a life that was killed
		return err
	}
	fd, err := unix.Openat(dir, temporary+name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = fill(fd, text, was)
	if err == nil {
		err = unix.Renameat(dir, temporary+name, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary+name, 0)
	}
	return err
}

// fill writes all of a file.
func fill(fd int, text string, as unix.Stat_t) error {
	for done := 0; done < len(text); {
		n, err := unix.Pwrite(fd, []byte(text[done:]), int64(done))
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.ENOSPC
		}
		done += n
	}
	if err := unix.Fchown(fd, int(as.Uid), int(as.Gid)); err != nil {
		return err
	}
	return unix.Fchmod(fd, as.Mode&0o7777)
}

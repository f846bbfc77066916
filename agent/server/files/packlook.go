// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
)

// look opens and reads the first of some names, as many as the arena has room for, and returns
// how many it took. At most the last of what it found has an open file. It runs within Do.
func (k *packer) look(dir int, full string, rel, names []string) (found []packed, n int) {
	arena := k.arena
	for n < len(names) && n < packedAtOnce {
		name := names[n]
		n++
		if IsTemp(name) {
			continue // an upload that is not complete
		}
		if k.excluded(append(rel[:len(rel):len(rel)], name)) {
			continue
		}
		f := packed{name: name, fd: -1}
		if err := k.stat(dir, full, &f); err != nil {
			if errors.Is(err, unix.ENOENT) && !k.follow {
				continue // removed meanwhile
			}
			f.why = leftWord(err)
			found = append(found, f)
			continue
		}
		if f.st.Mode&unix.S_IFMT == unix.S_IFREG {
			room, err := k.read(dir, full, &f, arena)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				f.why = leftWord(err)
			}
			arena = room
		}
		found = append(found, f)
		if f.fd >= 0 || len(arena) < packedSmall {
			break
		}
	}
	return found, n
}

func (k *packer) excluded(rel []string) bool {
	for i := range k.exclude {
		if k.exclude[i].Match(rel) {
			return true
		}
	}
	return false
}

// stat finds what an entry is. It runs within Do.
func (k *packer) stat(dir int, full string, f *packed) error {
	if err := unix.Fstatat(dir, f.name, &f.st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if f.st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return nil
	}
	if k.follow {
		look, err := k.s.Open(full+"/"+f.name, unix.O_PATH)
		if err != nil {
			return err
		}
		defer unix.Close(look)
		if err := dirs.CheckStorage(look); err != nil {
			return err
		}
		f.target = f.name // it is opened by its path
		return unix.Fstat(look, &f.st)
	}
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, f.name, b[:])
	f.target = string(b[:max(n, 0)])
	return err
}

// read opens a regular file, and reads a small one into the arena, whose rest it returns. It runs
// within Do.
func (k *packer) read(dir int, full string, f *packed, arena []byte) ([]byte, error) {
	if f.st.Nlink > 1 {
		if _, again := k.first[inode{f.st.Dev, f.st.Ino}]; again {
			return arena, nil
		}
	}
	var fd int
	var err error
	if f.target != "" {
		fd, f.st, err = k.s.openRegular(full+"/"+f.name, unix.O_RDONLY)
	} else if fd, err = unix.Openat(dir, f.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		if err = checkRegular(fd, f.name, &f.st); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		return arena, err
	}
	if f.st.Size > packedSmall {
		f.fd = fd
		return arena, nil
	}
	defer unix.Close(fd)
	got := 0
	for got < int(f.st.Size) {
		n, err := unix.Pread(fd, arena[got:f.st.Size], int64(got))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return arena, err
		}
		if n == 0 {
			break // it has become shorter
		}
		got += n
	}
	f.st.Size = int64(got)
	f.data = arena[:got:got]
	return arena[got:], nil
}

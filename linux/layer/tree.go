// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep removeTree goes before it lifts a directory up: it
// keeps two descriptors a level, and the depth of a tree is its owner's choice.
const maxDepth = 16

// openDir opens a directory, and never what a link leads to.
func openDir(dir int, name string) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// ensureDir opens a directory that only root can enter, made where missing.
func ensureDir(dir int, name string) (int, error) {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return openDir(dir, name)
}

// names lists a directory by a descriptor of its own, so that calls do not
// share a position.
func names(dir int) ([]string, error) {
	fd, err := openDir(dir, ".")
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

// isEmpty reports whether name in dir is a directory with nothing in it.
func isEmpty(dir int, name string) (bool, error) {
	fd, err := openDir(dir, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 512)
	n, err := unix.ReadDirent(fd, buf)
	if err != nil {
		return false, err
	}
	_, _, entries := unix.ParseDirent(buf[:n], 1, nil)
	return len(entries) == 0, nil
}

// removeTree removes name in dir with all that is in it. It follows no link,
// fails on a mount point, and holds at most 2*maxDepth+4 descriptors.
// What is not there is not an error; what is interrupted can be repeated.
func removeTree(dir int, name string) error {
	done, err := removeLeaf(dir, name)
	if done || err != nil {
		return err
	}
	top, err := openDir(dir, name)
	if err != nil {
		return err
	}
	w := walk{top: top}
	defer unix.Close(top)
	for {
		w.lifted = 0
		if err := w.empty(top, 0); err != nil {
			return err
		}
		if w.lifted == 0 {
			break
		}
	}
	return ignore(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR), unix.ENOENT)
}

// removeLeaf removes name if it is a file or an empty directory.
func removeLeaf(dir int, name string) (bool, error) {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	switch err {
	case nil, unix.ENOENT:
		return true, nil
	case unix.ENOTEMPTY, unix.EEXIST:
		return false, nil
	}
	return false, err
}

type walk struct {
	top    int
	lifted int    // directories moved to the top in this round
	serial uint64 // names of moved directories; never used twice
}

// empty removes what is in dir, which is depth levels below the top.
func (w *walk) empty(dir, depth int) error {
	fd, err := openDir(dir, ".")
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	for {
		removed := 0
		for {
			// Names alone: asked for types, Go would look names up by path
			// where the file system does not tell.
			entries, err := f.Readdirnames(512)
			for _, name := range entries {
				if err := w.remove(dir, name, depth); err != nil {
					return err
				}
				removed++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		// Some file systems skip entries while others are being removed.
		if removed == 0 || depth == 0 && w.lifted > 0 {
			return nil
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

func (w *walk) remove(dir int, name string, depth int) error {
	done, err := removeLeaf(dir, name)
	if done || err != nil {
		return err
	}
	if depth >= maxDepth {
		return w.lift(dir, name)
	}
	sub, err := openDir(dir, name)
	if err != nil {
		return ignore(err, unix.ENOENT)
	}
	err = w.empty(sub, depth+1)
	unix.Close(sub)
	if err != nil {
		return err
	}
	return ignore(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR), unix.ENOENT)
}

// lift moves a directory that is too deep to the top of the tree, where the
// next round finds it.
func (w *walk) lift(dir int, name string) error {
	for {
		w.serial++
		err := unix.Renameat2(dir, name, w.top, fmt.Sprintf(".deep-%d", w.serial), unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			continue
		}
		if err == nil {
			w.lifted++
		}
		return err
	}
}

func ignore(err, harmless error) error {
	if err == harmless {
		return nil
	}
	return err
}

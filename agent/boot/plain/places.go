// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Places is what MakePlaces is told, as JSON.
type Places struct {
	UID  uint32   `json:"uid"` // as in [Config], as are the next
	GID  uint32   `json:"gid"`
	Home string   `json:"home"`
	Disk []string `json:"disk"`
	Root string   `json:"root,omitempty"` // directory that an overlay may have over the container's root, see package overroot
	All  []Place  `json:"all"`
}

// Place is where a volume is going to be mounted.
type Place struct {
	Path  string `json:"path"`          // absolute, clean
	Whole string `json:"whole"`         // directory that the whole volume is mounted on now
	Sub   string `json:"sub,omitempty"` // the part that is going to be, made where it is missing; "": the whole
}

// ErrBlocked is returned by [MakePlaces] if a part of a path is a link, or another file that is no directory.
var ErrBlocked = errors.New("that, or a directory on the way, is a file or a link")

// MakePlaces makes a sandbox's disk, its volumes and the places for them ready to be mounted by who follows links: no part of a
// path is one. A volume that is new becomes the user's, and a directory that is made whose the one is that it is made in. Outside of the disk none is made.
func MakePlaces(config string) error {
	var p Places
	if err := json.Unmarshal([]byte(config), &p); err != nil {
		return fmt.Errorf("the places are not valid: %w", err)
	}
	unix.Umask(0o022)
	c := &Config{UID: p.UID, GID: p.GID, Home: p.Home, Disk: p.Disk}
	c.beginDisk()
	for _, place := range p.All {
		if err := c.giveVolume(place.Whole); err != nil {
			return fmt.Errorf("the volume for %s cannot be given to the sandbox's user: %w", place.Path, err)
		}
		if err := walk(place.Whole, place.Sub, true); err != nil {
			return fmt.Errorf("the directory %s of a volume cannot be mounted at %s: %w", place.Sub, place.Path, err)
		}
		if err := walk("/", strings.TrimPrefix(place.Path, "/"), c.onDisk(place.Path)); err != nil {
			return fmt.Errorf("a volume cannot be mounted at %s: %w", place.Path, err)
		}
		if err := p.inRoot(place.Path); err != nil {
			return fmt.Errorf("a volume cannot be mounted at %s: %w", place.Path, err)
		}
	}
	return nil
}

// inRoot checks path in the overlay's upper directory, if there is one, as walk does.
func (p *Places) inRoot(path string) error {
	if _, err := os.Lstat(p.Root); p.Root == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return walk(p.Root, strings.TrimPrefix(path, "/"), false)
}

// onDisk reports whether a path is below a directory of the disk.
func (c *Config) onDisk(path string) bool {
	for _, dir := range c.Disk {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

func (c *Config) giveVolume(path string) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(c.give(dir, true), dir.Close())
}

// walk goes along a path below a directory, and makes the directories that are missing, or stops at the first of these.
func walk(top, path string, create bool) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open(top, flags, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	for name := range strings.SplitSeq(path, "/") {
		if path == "" {
			break
		}
		var link unix.Stat_t // gVisor does not heed O_NOFOLLOW beside O_DIRECTORY
		if unix.Fstatat(at, name, &link, unix.AT_SYMLINK_NOFOLLOW) == nil && link.Mode&unix.S_IFMT == unix.S_IFLNK {
			return ErrBlocked
		}
		next, err := unix.Openat(at, name, flags, 0)
		if err == unix.ENOENT {
			if !create {
				return nil
			}
			next, err = makeIn(at, name)
		}
		if err == unix.ELOOP || err == unix.ENOTDIR {
			var st unix.Stat_t
			if !create && unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
				return nil // an overlay's mark of what was removed
			}
			return ErrBlocked
		}
		if err != nil {
			return err
		}
		_ = unix.Close(at)
		at = next
	}
	return nil
}

// makeIn makes a directory that is whose the one is that it is in. Where another has just made it, it is that.
func makeIn(at int, name string) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, err
	}
	made := unix.Mkdirat(at, name, 0o755)
	if made != nil && made != unix.EEXIST {
		return -1, made
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil && made == nil {
		if err = unix.Fchown(fd, int(st.Uid), int(st.Gid)); err != nil {
			_ = unix.Close(fd)
		}
	}
	return fd, err
}

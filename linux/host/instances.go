// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Instances is the directory of the files of those instances that are up: each has a
// socket and a state there. A create waits for both, and nothing of them outlives the
// host's boot, so they are kept in memory: a file system with a journal takes 0.1 ms for
// such a file while nothing else writes, and many times that while something does.
//
// The driver's directory has a link to it, by which the next server finds it. Where
// the host has no file system in memory, or where instances of an earlier version are up,
// it is a plain directory there.
type Instances struct {
	*os.Root
	dir       *os.File // the same, for Path
	link      string   // path of the link; "": it is a plain directory
	memory    string   // what it leads to
	namespace string   // is in the name of memory
	rebooted  bool     // there was one, of another boot of the host
}

// memoryDirs are where file systems in memory are, the better one first.
var memoryDirs = [...]string{"/run", "/dev/shm"}

// memoryPrefix begins the name of a directory of instances in memory. Its namespace, the boot
// and a random part follow, so that no other user of the host can have made it before us.
const memoryPrefix = "sandpit-"

func memoryName(namespace string) string { return memoryPrefix + namespace + "-" }

// linkPath returns the path of the link to the instances of a driver's directory.
func linkPath(dir string) string { return filepath.Join(dir, "instances") }

// InstancesDir returns where the files of the instances of a driver's directory are, or would
// be: it follows the link that OpenInstances made.
func InstancesDir(dir, namespace string) string {
	path := linkPath(dir)
	if target, err := os.Readlink(path); err == nil && strings.HasPrefix(filepath.Base(target), memoryName(namespace)) {
		return target
	}
	return path
}

// OpenInstances finds or makes the directory of instances of a driver's directory, which is
// absolute. boot is [BootID]'s.
func OpenInstances(dir, namespace, boot string) (_ *Instances, err error) {
	path := linkPath(dir)
	i := &Instances{namespace: namespace}
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
	case err != nil:
	case st.IsDir():
		// Of an earlier version, or of a host that has nothing in memory. It goes if it is empty.
		if err = os.Remove(path); errors.Is(err, unix.ENOTEMPTY) {
			return i.open(path)
		}
	case st.Mode()&fs.ModeSymlink == 0:
		err = fault.New(fault.State, "%s is not a directory", path).WithRemedy("move it away")
	default:
		var there bool
		if there, err = i.follow(dir, path, boot); there {
			return i.open(i.memory)
		}
		if err == nil {
			err = os.Remove(path)
		}
	}
	if err == nil {
		err = i.make(dir, path, boot)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the directory %s cannot be used", path)
	}
	if i.memory == "" {
		return i.open(path)
	}
	return i.open(i.memory)
}

// follow looks where the link leads. It is there only if it is ours, of this data directory
// and of this boot: one that was copied with the data directory leads to another server's.
func (i *Instances) follow(dir, path, boot string) (there bool, err error) {
	target, err := os.Readlink(path)
	if err != nil {
		return false, err
	}
	rest, ours := strings.CutPrefix(filepath.Base(target), memoryName(i.namespace))
	if !ours {
		return false, nil
	}
	if !strings.HasPrefix(rest, boot+"-") {
		i.rebooted = true
		return false, nil
	}
	var st unix.Stat_t
	switch err := unix.Lstat(target, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0:
		return false, fault.New(fault.Denied, "%s is not a directory that only this server's user can write", target).
			WithRemedy("see whose it is and what is in it; without it, the sandboxes that run are not found again")
	}
	i.link, i.memory = path, target
	return true, pointBack(dir, target)
}

// make makes it, in memory if the host has a place there.
func (i *Instances) make(dir, path, boot string) error {
	for _, base := range memoryDirs {
		var st unix.Statfs_t
		if unix.Statfs(base, &st) != nil || st.Type != unix.TMPFS_MAGIC {
			continue
		}
		sweepMemory(base, boot)
		target := filepath.Join(base, memoryName(i.namespace)+boot+"-"+strings.ToLower(rand.Text()[:8]))
		if os.Symlink(dir, target+ofSuffix) != nil {
			continue // the next place, or the plain one
		}
		err := os.Mkdir(target, 0o700)
		if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil {
			_ = os.Remove(target)
			_ = os.Remove(target + ofSuffix)
			return err
		}
		i.link, i.memory = path, target
		return nil
	}
	return os.Mkdir(path, 0o700)
}

// ofSuffix ends the name of a link beside a directory in memory, to the driver's directory
// that it is of.
const ofSuffix = ".of"

// pointBack has the link beside a directory in memory lead to dir, whose path may have changed.
func pointBack(dir, memory string) error {
	link := memory + ofSuffix
	if leads, err := os.Readlink(link); err == nil && leads == dir {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(dir, link)
}

// sweepAge is how old such a link is before it is looked at.
const sweepAge = time.Minute

// sweepMemory removes from base what is of no driver's directory any more: that was deleted
// while no server ran, or its server ended on the way. Where a process of such a sandbox
// still runs it is left: the data directory may be found again, and `doctor` wants it then.
func sweepMemory(base, boot string) {
	links, _ := filepath.Glob(filepath.Join(base, memoryPrefix+"*"+ofSuffix)) // the pattern is a good one
	for _, link := range links {
		var st unix.Stat_t
		memory := strings.TrimSuffix(link, ofSuffix)
		dir, err := os.Readlink(link)
		// Anybody may make names in base: what is not ours means nothing.
		if err != nil || !filepath.IsAbs(dir) || unix.Lstat(link, &st) != nil || int(st.Uid) != os.Geteuid() {
			continue
		}
		if time.Since(time.Unix(st.Mtim.Sec, st.Mtim.Nsec)) < sweepAge {
			continue // another server may be about to link to it
		}
		if leads, err := os.Readlink(linkPath(dir)); leads == memory || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
			continue
		}
		switch err := unix.Lstat(memory, &st); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || lives(memory, boot):
			continue
		}
		if os.RemoveAll(memory) == nil {
			_ = os.Remove(link)
		}
	}
}

// lives reports whether a process of an instance in the directory lives, or may.
func lives(memory, boot string) bool {
	root, err := os.OpenRoot(memory)
	if err != nil {
		return true
	}
	defer func() { _ = root.Close() }()
	files, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return true
	}
	for _, f := range files {
		id, isState := strings.CutSuffix(f.Name(), StateFile)
		if !isState {
			continue
		}
		s, err := ReadState(root, id)
		if err != nil {
			continue // it names no process
		}
		pidfd, err := s.Open(boot)
		if pidfd != nil {
			_ = pidfd.Close()
		}
		if pidfd != nil || err != nil {
			return true
		}
	}
	return false
}

func (i *Instances) open(path string) (_ *Instances, err error) {
	if i.Root, err = os.OpenRoot(path); err != nil {
		return nil, err
	}
	if i.dir, err = i.Root.Open("."); err != nil {
		_ = i.Root.Close()
		return nil, err
	}
	return i, nil
}

// Rebooted reports whether the directory that was there was of another boot of the host.
func (i *Instances) Rebooted() bool { return i.rebooted }

// Path returns a path of a file in the directory that is short wherever the directory is, as
// the address of a socket has to be. It holds in this process, until Close.
func (i *Instances) Path(name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(i.dir.Fd())) + "/" + name
}

// Close closes the directory. One in memory is removed if nothing is in it.
func (i *Instances) Close() error {
	if i.link != "" && os.Remove(i.memory) == nil {
		_ = os.Remove(i.link)
		_ = os.Remove(i.memory + ofSuffix)
	}
	return errors.Join(i.dir.Close(), i.Root.Close())
}

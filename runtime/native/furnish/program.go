// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
	"sandpit.dev/linux/mount"
)

// program is sudo's program, on a file system of its own: a list of mounts names where in its file system a file is,
// which on the host's would tell sandboxes a path of the host.
type program struct {
	files *os.File         // the file system, detached; on older kernels attached in held
	held  *mount.Namespace // nil: files can be cloned as it is
}

// openProgram copies the program at from, of which mounts are made, for kernels before Linux 6.15 where old is set.
func openProgram(from string, old bool) (_ *program, err error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	size := fmt.Sprint(info.Size() + 1<<20)
	p := &program{}
	if p.files, err = mount.New("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, mount.Param{Key: "mode", Value: "0755"}, mount.Param{Key: "size", Value: size}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	fd, err := unix.Openat(int(p.files.Fd()), programName, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o111)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: programName, Err: err}
	}
	out := os.NewFile(uintptr(fd), programName)
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o111), out.Close()); err != nil { // whatever the umask is
		return nil, err
	}
	if old {
		if p.held, err = mount.NewNamespace(); err != nil {
			return nil, err
		}
		err = p.held.Keep(int(p.files.Fd()))
	}
	return p, err
}

var programName = path.Base(sudo.Program)

// clone makes a detached mount of the program. All sandboxes have that file: none can open it, to lock or to watch it,
// and to execute it takes no more than its mode gives everybody.
func (p *program) clone() (m *os.File, err error) {
	if p.held != nil {
		m, err = p.held.CloneAt(int(p.files.Fd()), programName)
	} else {
		m, err = mount.CloneAt(int(p.files.Fd()), programName)
	}
	if err != nil {
		return nil, err
	}
	if err := mount.SetAttr(m, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Close lets go of the file system. The mounts that were made of it go on.
func (p *program) Close() error {
	var err error
	if p.held != nil {
		err = p.held.Close()
	}
	return errors.Join(err, p.files.Close())
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// mounted is a volume in a machine's tree. There it is a symbolic link, whatever
// was at its place is aside meanwhile. Commands follow it; the agent's file API does
// not, since it stays in the tree. A read-only one is not: the fake isolates nothing.
type mounted struct {
	Path   string     // below the disk
	Volume sandbox.ID // zero when it was found after a crash
}

const (
	mountsFile = "mounts"
	coveredDir = "covered"
)

// mount links the volumes, all or none. verb is held, and the machine is down.
func (m *machine) mount(mounts []sandbox.Mount) (err error) {
	if len(mounts) == 0 {
		return nil
	}
	if err := sandbox.CheckMounts(mounts); err != nil {
		return err
	}
	var targets []string
	defer func() {
		if err != nil {
			err = errors.Join(err, m.unmount())
		}
	}()
	for _, v := range mounts {
		at := strings.TrimPrefix(v.Path, "/")
		if err := makeDirs(m.disk(), at); err != nil {
			return blockedAs(err, "no volume can be mounted at %s", v.Path)
		}
		target, err := m.host.attach(v.Volume, v.Sub)
		if err != nil {
			return err
		}
		targets = append(targets, target)
		m.mounts = append(m.mounts, mounted{Path: at, Volume: v.Volume})
	}
	list, err := json.Marshal(m.mounts)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, mountsFile), list, 0o644)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(m.dir, coveredDir), 0o755)
	}
	for n := 0; err == nil && n < len(targets); n++ {
		at := filepath.Join(m.disk(), m.mounts[n].Path)
		if err = os.Rename(at, m.covered(n)); err == nil {
			err = os.Symlink(targets[n], at)
		}
	}
	return err
}

// unmount puts everything back, also after a crash halfway.
func (m *machine) unmount() error {
	for _, v := range m.mounts {
		m.host.detach(v.Volume)
	}
	m.mounts = nil
	list, err := os.ReadFile(filepath.Join(m.dir, mountsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var mounts []mounted
	if err == nil {
		err = json.Unmarshal(list, &mounts)
	}
	for n := len(mounts) - 1; err == nil && n >= 0; n-- {
		if _, none := os.Lstat(m.covered(n)); none != nil {
			continue
		}
		at := filepath.Join(m.disk(), mounts[n].Path)
		if err = os.RemoveAll(at); err == nil { // the link; commands may have put something else there
			err = os.Rename(m.covered(n), at)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(m.dir, coveredDir)), os.Remove(filepath.Join(m.dir, mountsFile)))
}

func (m *machine) covered(n int) string {
	return filepath.Join(m.dir, coveredDir, strconv.Itoa(n))
}

// hidden says where what is under the volumes is now, by name. verb is held.
func (m *machine) hidden() map[string]string {
	at := make(map[string]string, len(m.mounts))
	for n, v := range m.mounts {
		at[v.Path] = m.covered(n)
	}
	return at
}

// blocked is the error of a path on which this name is a file or a link.
type blocked string

func (b blocked) Error() string {
	return fmt.Sprintf("%q is a file or a link", sandbox.Clip(string(b), 80))
}

// blockedAs returns such an error its code and words, and any other as it is.
func blockedAs(err error, format string, args ...any) error {
	if _, ok := errors.AsType[blocked](err); !ok {
		return err
	}
	return fault.Wrap(fault.Conflict, err, format, args...).WithRemedy("remove what is there, or choose another path")
}

// makeDirs makes the directory name below root, where it is missing. A link on the
// way is blocked: it may have been put there to lead elsewhere.
func makeDirs(root, name string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	parts := strings.Split(name, "/")
	for n := range parts {
		at := filepath.Join(parts[:n+1]...)
		info, err := r.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = r.Mkdir(at, 0o755)
		case err == nil && !info.IsDir():
			err = blocked(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

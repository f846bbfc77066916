// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// DebianSuite is packages of another release than the host's, unpacked with all that they depend on, the C library included.
// Its programs run where the tree covers the host's /usr, see [Kit.Cover], and are named as if they were installed.
type DebianSuite struct {
	Suite    string
	Packages string // the names, with a space between two
}

func (d DebianSuite) Name() string {
	return strings.ReplaceAll(d.Packages, " ", "+") + "@" + d.Suite
}

func (d DebianSuite) Offer() string {
	return "--fetch gets Debian's " + d.Packages + " of " + d.Suite + " without installing it"
}

// Get downloads as if nothing were installed.
func (d DebianSuite) Get(ctx context.Context, p *Finder, root string) (err error) {
	from, err := HostArchive()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.Scratch, "suite-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the run's directory goes anyway
	lists, sources, status := filepath.Join(dir, "lists"), filepath.Join(dir, "debian.sources"), filepath.Join(dir, "status")
	for _, sub := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{sources: from.Source(d.Suite), status: ""} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	options := []string{
		"-o", "Dir::Etc::SourceList=" + sources, "-o", "Dir::Etc::SourceParts=-", "-o", "Dir::Etc::Preferences=-", "-o", "Dir::Etc::PreferencesParts=-",
		"-o", "Dir::State::status=" + status, "-o", "Acquire::Languages=none",
	}
	if err := apt(ctx, lists, dir, append(slices.Clone(options), "update")...); err != nil {
		return err
	}
	if err := apt(ctx, lists, dir, append(options, download(strings.Fields(d.Packages)...)...)...); err != nil {
		return err
	}
	if _, err := extract(ctx, dir, root); err != nil {
		return err
	}
	// A release's base system has these links, which no package that was asked for depends on.
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			continue
		}
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// Cover mounts the tree of a [DebianSuite] over the host's /usr, in the mount namespace of the calling thread. What the tree lacks is the host's.
func (k Kit) Cover() error {
	if !k.whole {
		return nil
	}
	if err := unix.Mount("overlay", "/usr", "overlay", unix.MS_RDONLY, "lowerdir="+filepath.Join(k.root, "usr")+":/usr"); err != nil {
		return fmt.Errorf("cover /usr with what is in %s: %w", k.root, err)
	}
	return nil
}

// inside has a command of the kit run in the tree of a [DebianSuite], with the libraries that are there.
func (k Kit) inside(cmd *exec.Cmd) {
	if rest, found := strings.CutPrefix(cmd.Path, k.root+"/"); found && k.whole {
		cmd.Path, cmd.Dir, cmd.SysProcAttr.Chroot = "/"+rest, "/", k.root
	}
}

// whole reports whether a source's kits are systems of their own.
func whole(from Source) bool {
	_, ok := from.(DebianSuite)
	return ok
}

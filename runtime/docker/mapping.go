// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// user is whom the host takes a container's root for.
type user struct{ uid, gid int }

// mapsUsers reports whether containers are in a user namespace of the Engine's: root inside is no root of the host's.
func mapsUsers(info engineapi.Info) bool { return hasSecurity(info, "userns") }

// isRootless reports whether the Engine itself is in a user namespace, as somebody who is not root.
func isRootless(info engineapi.Info) bool { return hasSecurity(info, "rootless") }

func hasSecurity(info engineapi.Info, name string) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return o == "name="+name || strings.HasPrefix(o, "name="+name+",") })
}

// rootOf returns who a container's root is on the host. An Engine that maps users says so by the name of its
// directory, which ends in /UID.GID, and nowhere else.
func rootOf(info engineapi.Info) (user, error) {
	if !mapsUsers(info) {
		return user{}, nil
	}
	uid, gid, _ := strings.Cut(path.Base(info.RootDir), ".")
	u, errUID := strconv.ParseUint(uid, 10, 31)
	g, errGID := strconv.ParseUint(gid, 10, 31)
	if errUID != nil || errGID != nil || u == 0 || g == 0 {
		return user{}, fault.New(fault.Unsupported, "the Engine maps users, and does not say to whom it maps root: its directory is %q, and would end in /UID.GID", sandbox.Clip(info.RootDir, 200)).
			WithRemedy("set docker.stream: true, which needs no files that server and containers share")
	}
	return user{int(u), int(g)}, nil
}

// containerRoot asks the Engine for rootOf, and keeps the answer until it is told that the Engine may be another.
func (d *Driver) containerRoot(ctx context.Context) (user, error) {
	d.mu.Lock()
	known := d.root
	d.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	info, err := d.engine.Info(ctx)
	if err != nil {
		return user{}, err
	}
	if isRootless(info) {
		return user{}, fault.New(fault.Unsupported, "the Engine at %s is not root, and sees no files of a server that is", d.engine.Host()).WithRemedy("set docker.stream: true")
	}
	u, err := rootOf(info)
	if err != nil {
		return user{}, err
	}
	d.mu.Lock()
	d.root = &u
	d.mu.Unlock()
	return u, nil
}

// mappedRoot is containerRoot as the Engine itself sees it: one that is not root sees users as the container does.
func (d *Driver) mappedRoot(ctx context.Context) (user, error) {
	info, err := d.engine.Info(ctx)
	if err != nil || isRootless(info) {
		return user{}, err
	}
	return rootOf(info)
}

// forgetRoot has the Engine asked again: it ended, and the next may map users otherwise.
func (d *Driver) forgetRoot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root = nil
}

// give makes a file or directory that a container has mounted that of its root. Links are not followed.
func give(dir *os.Root, name string, to user) error {
	if to == (user{}) {
		return nil
	}
	return dir.Lchown(name, to.uid, to.gid)
}

// makeDirectory makes the instance's directory, or finds it. What is mounted of it is the container's root's.
func (i *Instance) makeDirectory(ctx context.Context) error {
	failed := func(err error) error {
		return fault.Wrap(fault.Internal, err, "the directory of sandbox %s cannot be made", i.id)
	}
	run := string(i.id) + "/" + runDir
	for _, dir := range []string{string(i.id), run} {
		if err := i.d.instances.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return failed(err)
		}
	}
	if i.streams() {
		return nil
	}
	root, err := i.d.containerRoot(ctx)
	if err != nil {
		return err
	}
	if err := give(i.d.instances, run, root); err != nil {
		return failed(err)
	}
	return nil
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
	"sandpit.dev/runtime/docker/engineapi"
)

// insideTrial is where a container that never runs has a directory of the server's. It is not a mere
// file: Podman goes into what is mounted to look at it.
const insideTrial = insideDir + "/trial"

// trialRepository is the name of the image of such a container, on an Engine that has no other.
const trialRepository = "localhost/sandpit/trial"

// chooseTransport finds out, once, how the agents of new containers are reached: by sockets in directories of the
// server's, or through the Engine where that does not see the server's files, as from within a container.
func (d *Driver) chooseTransport(ctx context.Context) error {
	if err := d.clean(ctx); err != nil {
		return err
	}
	return d.chosen.do(ctx, func() error {
		if d.stream.Load() { // whatever the Engine sees
			return nil
		}
		info, err := d.engine.Info(ctx)
		if err != nil {
			return err
		}
		// One that is not root comes by no directory of a server that is, whatever its process is shown.
		sees := !isRootless(info)
		if sees {
			sees, err = d.seesFiles(ctx)
		}
		if err != nil {
			return err
		}
		if !sees {
			d.log.Info("the Engine does not see the server's files: agents are reached through the Engine", "engine", d.engine.Host().String(), "directory", d.instances.Name())
			d.stream.Store(true)
		}
		return nil
	})
}

// seesFiles reports whether the Engine sees the file that the server sees under a path. What is merely called the same
// there is another: the file has a name that nobody else gives.
func (d *Driver) seesFiles(ctx context.Context) (sees bool, err error) {
	name := "trial." + strings.ToLower(rand.Text()) // no id of a sandbox, so that no list has it
	const file, content = "file", "sandpit"
	defer func() { err = errors.Join(err, d.instances.RemoveAll(name)) }()
	err = d.instances.Mkdir(name, 0o700)
	if err == nil {
		err = d.instances.WriteFile(name+"/"+file, []byte(content), 0o600)
	}
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "a file for the Engine to see cannot be written")
	}
	path := filepath.Join(d.instances.Name(), name, file)
	if d.processSees(ctx, path) {
		return true, nil
	}
	return d.containerSees(ctx, path, int64(len(content)))
}

// processSees reports whether the process that listens at the Engine's socket is one that this process sees, and has
// the file under the same path. That it does not is no proof: another process may listen for it.
func (d *Driver) processSees(ctx context.Context, path string) bool {
	nc, err := d.engine.Host().Dial(ctx)
	if err != nil {
		return false
	}
	pid, err := listenerOf(nc)
	_ = nc.Close()
	if err != nil || pid <= 0 {
		return false
	}
	ours, err := os.Lstat(path)
	if err != nil {
		return false
	}
	theirs, err := os.Lstat("/proc/" + strconv.Itoa(pid) + "/root" + path)
	return err == nil && os.SameFile(ours, theirs)
}

// containerSees has the Engine mount the file's directory in a container that never runs, and looks for the file there.
func (d *Driver) containerSees(ctx context.Context, path string, size int64) (sees bool, err error) {
	ctx, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	image, removeImage, err := d.trialImage(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, removeImage(ctx)) }()
	made, err := d.engine.CreateContainer(ctx, engineapi.Container{
		Name:   "sandpit-" + d.namespace + "-trial-" + rand.Text(),
		Config: engineapi.Config{Image: image, Cmd: []string{"none"}, Labels: map[string]string{labelServer: d.namespace, labelRole: roleAgent}},
		Host: engineapi.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, Mounts: []engineapi.Mount{{Type: "bind", Source: filepath.Dir(path), Target: insideTrial, ReadOnly: true}},
		},
	})
	if err != nil {
		if isMissingSource(err) {
			return false, nil
		}
		return false, err
	}
	defer func() { err = errors.Join(err, d.engine.RemoveContainer(ctx, made)) }()
	got, err := d.engine.StatArchive(ctx, made, insideTrial+"/"+filepath.Base(path))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return got.Size == size, err
}

// isMissingSource reports whether an Engine refuses a container since it has no file to mount there, in Docker's words or in Podman's.
func isMissingSource(err error) bool {
	said := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		said += cause.Error()
	}
	return strings.Contains(said, "bind source path does not exist") || strings.Contains(said, "no such file or directory")
}

// trialImage returns an image that the Engine has. One that has none gets an empty one until remove.
func (d *Driver) trialImage(ctx context.Context) (id string, remove func(context.Context) error, err error) {
	list, err := d.engine.ListImages(ctx)
	if err != nil {
		return "", nil, err
	}
	if len(list) > 0 {
		return list[0].ID, func(context.Context) error { return nil }, nil
	}
	empty, err := os.MkdirTemp("", "sandpit-trial-")
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, err, "an empty image for the Engine cannot be made")
	}
	defer func() { err = errors.Join(err, os.Remove(empty)) }()
	ref := trialRepository + ":" + d.namespace
	made, err := oci.Save(ctx, oci.Rootfs{Dir: empty, Reference: ref})
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, err, "an empty image for the Engine cannot be made")
	}
	if err := d.send(ctx, made, "an empty image"); err != nil {
		return "", nil, err
	}
	img, err := d.engine.InspectImage(ctx, ref)
	return img.ID, func(ctx context.Context) error { return d.engine.RemoveImage(ctx, ref) }, err
}

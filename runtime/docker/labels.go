// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Labels of what is ours.
const (
	labelServer  = "dev.sandpit.server"  // namespace of the server that made it
	labelSandbox = "dev.sandpit.sandbox" // id
	labelProject = "dev.sandpit.project"
	labelOf      = "dev.sandpit.of"     // id of the image that the container was made of, in its Engine
	labelPolicy  = "dev.sandpit.policy" // fingerprint of what the container may do
	labelRole    = "dev.sandpit.role"   // of what is no sandbox
	labelImage   = "dev.sandpit.image"  // digest of the server's image that an Engine's image is, or a disk began with
	// labelSnapshot is of an image that is a snapshot: its id. Such an image has in labelOf the image of
	// the container that it was committed of.
	labelSnapshot = "dev.sandpit.snapshot"
	labelVolume   = "dev.sandpit.volume" // id, of a volume
	labelMade     = "dev.sandpit.made"   // of a volume: which call made it
	labelDisk     = "dev.sandpit.disk"   // MiB that a container's layer is limited to; "": it is not
	labelMounts   = "dev.sandpit.mounts" // volumes of a container, see mountsLabel
)

// Roles.
const (
	roleAgent = "agent" // of the volume with the agent, and of containers that never run: one fills it, one tries what the Engine sees
	roleDisk  = "disk"  // of a container that never runs, of which a disk is read
	roleStep  = "step"  // of a container that makes sockets in a sandbox's network
)

// containerName is what people see. Containers are never looked for by it.
func (d *Driver) containerName(id sandbox.ID) string {
	return "sandpit-" + d.namespace + "-" + string(id)
}

// ours are the labels of this server's sandboxes.
func (d *Driver) ours() string { return labelServer + "=" + d.namespace }

// found is a container that is a sandbox of this server.
type found struct {
	id        sandbox.ID
	container string
}

// find lists the containers of this server, one for each sandbox; with labels, those that have them, too.
func (d *Driver) find(ctx context.Context, labels ...string) ([]found, error) {
	list, err := d.engine.ListContainers(ctx, append(labels, d.ours())...)
	if err != nil {
		return nil, err
	}
	// Whoever copied all labels of a container, its image included, made a second one of a name of its own.
	slices.SortStableFunc(list, func(a, b engineapi.Listed) int { return cmp.Compare(a.Created, b.Created) })
	byID := map[sandbox.ID]found{}
	ranks := map[sandbox.ID]int{}
	for _, c := range list {
		id := sandbox.ID(c.Labels[labelSandbox])
		if !sandbox.ValidID(string(id)) || c.Labels[labelOf] == "" || c.Labels[labelOf] != c.ImageID {
			continue
		}
		rank := d.rank(id, c.Names)
		if _, known := byID[id]; known && ranks[id] >= rank {
			continue
		}
		byID[id], ranks[id] = found{id, c.ID}, rank
	}
	out := make([]found, 0, len(byID))
	for _, f := range byID {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

// What containers are called while one takes the place of another, see replace.
const (
	suffixNext = ".next"
	suffixOld  = ".old"
)

// rank says which of several containers of a sandbox is it: the one of the highest.
func (d *Driver) rank(id sandbox.ID, names []string) int {
	name := "/" + d.containerName(id)
	switch {
	case slices.Contains(names, name):
		return 3
	case slices.Contains(names, name+suffixOld):
		return 2
	case slices.Contains(names, name+suffixNext):
		return 0
	}
	return 1
}

// fingerprint is of all that says what a container may do, but for its limits.
func fingerprint(h engineapi.HostConfig) string {
	h.Resources, h.Mounts, h.StorageOpt = engineapi.Resources{}, nil, nil
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and numbers are always JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

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
	labelImage   = "dev.sandpit.image"  // digest of the server's image that an Engine's image is
)

// roleAgent is of the volume with the agent, and of the container that fills it.
const roleAgent = "agent"

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
	named := map[sandbox.ID]bool{}
	for _, c := range list {
		id := sandbox.ID(c.Labels[labelSandbox])
		if !sandbox.ValidID(string(id)) || c.Labels[labelOf] == "" || c.Labels[labelOf] != c.ImageID {
			continue
		}
		isNamed := slices.Contains(c.Names, "/"+d.containerName(id))
		if _, known := byID[id]; known && (named[id] || !isNamed) {
			continue
		}
		byID[id], named[id] = found{id, c.ID}, isNamed
	}
	out := make([]found, 0, len(byID))
	for _, f := range byID {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

// fingerprint is of all that says what a container may do, but for its limits.
func fingerprint(h engineapi.HostConfig) string {
	h.Resources, h.Mounts = engineapi.Resources{}, nil
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and numbers are always JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

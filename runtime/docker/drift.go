// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// driftText says of a container that its label has another fingerprint than one would that is made now.
const driftText = "its container was made with other rights, or for another OCI runtime, than this server gives now: by another version of it, or another docker.runtime"

// driftRemedy is what mends it.
const driftRemedy = "stop it and start it again: it keeps its disk"

var _ runtime.Noter = (*Instance)(nil)

// drift reports whether the container was made with other rights than the driver gives now.
func (i *Instance) drift() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.drifted
}

// tellDrift tells of it in the log, when the container is found.
func (i *Instance) tellDrift() {
	if i.drift() {
		i.d.log.Warn("a sandbox has other rights than it would get now", "sandbox", i.id, "why", driftText, "remedy", driftRemedy)
	}
}

// Note returns what the last start did about a drift, or why it did nothing.
func (i *Instance) Note() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.note
}

func (i *Instance) setNote(note string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.note = note
}

// mendDrift has a container with the rights of now take the place of one that is down and was made with others, on
// the same disk, and tells what became of a drift that there was. What fails is no reason not to start: the container
// that there is stays as it is. verb is held.
func (i *Instance) mendDrift(ctx context.Context, spec runtime.Spec, was bool) {
	i.setNote("")
	if !was {
		return
	}
	var err error
	if i.drift() { // and no new container has been made for other volumes
		err = i.remake(ctx, spec)
	}
	if err != nil {
		i.d.log.Warn("a sandbox starts with other rights than it would get now", "sandbox", i.id, "why", driftText, "error", err)
		i.setNote(driftText + "; it goes on as it is: " + fault.As(err).Message)
		return
	}
	i.d.log.Info("a sandbox has got the rights of now, and kept its disk", "sandbox", i.id, "why", driftText)
	i.setNote(driftText + "; it has got those of now, and kept its disk")
}

// remake puts a container that is made now in the place of the instance's, with its disk.
func (i *Instance) remake(ctx context.Context, spec runtime.Spec) error {
	c, err := i.d.engine.InspectContainer(ctx, i.its())
	if err != nil {
		return err
	}
	now := specOf(i.id, c)
	now.Limits, now.Mounts = spec.Limits, spec.Mounts
	return i.rebuild(ctx, c, now)
}

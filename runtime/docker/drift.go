// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// driftText says of a container that its label has another fingerprint than one would that is made now.
const driftText = "its container was made with other rights, or for another OCI runtime, than this server gives now: by another version of it, or another docker.runtime"

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
		i.d.log.Warn("a sandbox has other rights than it would get now", "sandbox", i.id, "why", driftText, "remedy", i.driftRemedy())
	}
}

func (i *Instance) driftRemedy() string {
	if err := i.d.keepsSnapshots(); err != nil {
		return "make a new sandbox in its place when it suits you: " + fault.As(err).Message
	}
	return "stop it and start it again: it keeps its disk"
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
// the same disk. What fails is told, and is no reason not to start: the container that there is stays as it is. verb is held.
func (i *Instance) mendDrift(ctx context.Context, l sandbox.Limits) {
	i.setNote("")
	if !i.drift() {
		return
	}
	err := i.d.keepsSnapshots()
	if err == nil {
		err = i.remake(ctx, l)
	}
	if err != nil {
		i.d.log.Warn("a sandbox starts with other rights than it would get now", "sandbox", i.id, "why", driftText, "error", err)
		i.setNote(driftText + "; it goes on as it is: " + fault.As(err).Message)
		return
	}
	i.d.log.Info("a sandbox has got the rights of now, and kept its disk", "sandbox", i.id, "why", driftText)
	i.setNote(driftText + "; it has got those of now, and kept its disk")
}

// remake makes an image of the container's disk and a container of that, as a rollback does, all or nothing. The image has
// the name of one that was released from the beginning: it goes with the last container that uses it, also where
// the server ended before one did.
func (i *Instance) remake(ctx context.Context, l sandbox.Limits) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	c, err := i.d.engine.InspectContainer(work, i.its())
	if err != nil {
		return err
	}
	was, err := i.d.engine.InspectImage(work, c.Image)
	if err != nil {
		return err
	}
	if n := len(was.RootFS.Layers); n >= flattenMost {
		return fault.New(fault.Conflict, "the disk of sandbox %s has %d layers, and the Engine makes no container of many more", i.id, n).
			WithRemedy("take a snapshot, make a sandbox of that")
	}
	tag := i.d.namespace + "-" + strings.ToLower(rand.Text())
	defer i.d.needOld(work, oldRepository+":"+tag)()
	image, err := i.d.engine.CommitContainer(work, c.ID, engineapi.Commit{
		Repository: oldRepository, Tag: tag,
		Labels: map[string]string{labelServer: i.d.namespace, labelSnapshot: string(i.id), labelOf: c.Image, labelSandbox: "", labelPolicy: ""},
	})
	if err == nil {
		err = i.d.agent.do(work, func() error { return i.d.fillAgent(work, image) })
	}
	if err != nil {
		return err
	}
	return i.replace(work, i.d.container(runtime.Spec{
		ID: i.id, Hostname: c.Config.Hostname, Project: c.Config.Labels[labelProject], Limits: l, Image: runtime.Image{Digest: c.Config.Labels[labelImage]},
	}, image))
}

// needOld keeps an image that has the name of a released one until the function that it returns is called, and has it
// removed then, unless a container uses it.
func (d *Driver) needOld(ctx context.Context, ref string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.needed[ref] = true
	return func() {
		d.mu.Lock()
		delete(d.needed, ref)
		d.someOld = true
		d.mu.Unlock()
		d.removeOld(ctx)
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

// driftText says of a container that its label has another fingerprint than one would that is made now.
const driftText = "its container was made with other rights, or for another OCI runtime, than this server gives now: by another version of it, or another docker.runtime"

// drift reports whether the container was made with other rights than the driver gives now. Its disk is
// its own layer, so that it goes on as it is.
func (i *Instance) drift() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.drifted
}

// tellDrift tells of it in the log: when the container is found, and at each start.
func (i *Instance) tellDrift() {
	if i.drift() {
		i.d.log.Warn("a sandbox has other rights than it would get now", "sandbox", i.id, "why", driftText, "remedy", "make a new sandbox in its place when it suits you")
	}
}

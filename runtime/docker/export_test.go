// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import "sandpit.dev/runtime/docker/engineapi"

// SetDepth sets from how many layers on those of a snapshot are made one.
func (d *Driver) SetDepth(n int) { d.depth = n }

// RootOf returns who a container's root is on the host.
func RootOf(info engineapi.Info) (uid, gid int, err error) {
	u, err := rootOf(info)
	return u.uid, u.gid, err
}

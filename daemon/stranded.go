// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// stranded lists the sandboxes that run on a store that another has replaced, with an error if
// there are any: what they write, synced or not, is gone when they end. A missing store may yet
// be mounted, see [layer.Missing].
func (p *pieces) stranded(namespace string) ([]sandbox.ID, error) {
	f := p.file
	if p.kind == nil || f == nil || f.StoreInode == 0 || !p.store || f.Boot != p.here.Boot ||
		f.StoreDevice == p.here.StoreDevice && f.StoreInode == p.here.StoreInode {
		return nil, nil
	}
	ids, err := p.kind.Up(place(p.kind, p.dir, namespace))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return ids, fault.New(fault.State, "%d sandboxes run on the disks of another store than the one in %s, which was put in its place", len(ids), p.layers()).
		WithRemedy("put back the file or directory that they run on; or end them by `sandpit doctor --repair`: what they wrote that is not in the store that is there is lost")
}

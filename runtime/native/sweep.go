// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io/fs"
	"slices"

	"sandpit.dev/linux/host"
	"sandpit.dev/sandbox"
)

// aheadFile is the mark of an instance that an earlier version made before anybody asked for
// it, and that nobody has. It goes with the host's boot; its layer has a mark, too, which
// [layer.Store.Unrecorded] knows.
const aheadFile = ".ahead"

// sweepStarts frees what the end of a server left of starts that never got as far as a
// disk. Instances that are up have a state, and are not touched; nor is what has a layer, but
// for what an earlier version made ahead.
func (d *Driver) sweepStarts() error {
	ids, err := d.live()
	if err != nil {
		return err
	}
	groups, err := d.cgroups.List()
	if err != nil {
		return err
	}
	layers, err := d.layers.List()
	if err != nil {
		return err
	}
	for _, name := range groups {
		ids = append(ids, sandbox.ID(name))
	}
	slices.Sort(ids)
	slices.Sort(layers)
	for _, id := range slices.Compact(ids) {
		if !sandbox.ValidID(string(id)) {
			continue
		}
		_, hasLayer := slices.BinarySearch(layers, string(id))
		if err := d.sweepStart(id, hasLayer); err != nil {
			d.log.Error("what was begun of a sandbox is left behind", "sandbox", id, "error", err)
		}
	}
	return nil
}

func (d *Driver) sweepStart(id sandbox.ID, hasLayer bool) error {
	i := &Instance{d: d, id: id}
	if _, err := d.instances.Lstat(string(id) + aheadFile); err == nil {
		return i.clear()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := d.instances.Lstat(string(id) + host.StateFile); err == nil || hasLayer {
		return nil
	}
	return d.sweepDown(i)
}

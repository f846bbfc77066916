// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/fault"
)

// LosesDirectory reports whether this process runs in a container of the Engine's that is removed when it ends, as by docker
// run --rm, and a directory with it: no volume that stays is mounted there.
func (d *Driver) LosesDirectory(ctx context.Context, dir string) (bool, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "the mounts of this process cannot be read")
	}
	id := ownContainer(string(mountinfo))
	if id == "" {
		return false, nil
	}
	c, err := d.engine.InspectContainer(ctx, id)
	if fault.Is(err, fault.NotFound) { // it is another Engine's
		return false, nil
	}
	if err != nil || !c.HostConfig.AutoRemove {
		return false, err
	}
	for _, m := range c.Mounts {
		rel, err := filepath.Rel(m.Destination, dir)
		if err == nil && filepath.IsLocal(rel) && !isAnonymous(m.Type, m.Name) {
			return false, nil
		}
	}
	return true, nil
}

// ownContainer returns the id of the container that the mounts are of, as Engines give it; "": there is none. The file with
// its host's name is in a directory that is called after it.
func ownContainer(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 || f[4] != "/etc/hostname" {
			continue
		}
		for part := range strings.SplitSeq(f[3], "/") {
			if isHexID(part) {
				return part
			}
		}
	}
	return ""
}

// isAnonymous reports whether a mount is a volume that an Engine made for one container, and removes with it.
func isAnonymous(kind, name string) bool { return kind == "volume" && isHexID(name) }

func isHexID(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

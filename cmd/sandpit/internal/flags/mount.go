// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"strings"

	v1 "sandpit.dev/api/v1"
)

// Mounts is a flag NAME[/SUB]:PATH[:ro] that may be given again and again.
type Mounts []v1.MountVolume

func (m *Mounts) Type() string { return "NAME:PATH" }

func (m *Mounts) String() string { return "" }

func (m *Mounts) Set(s string) error {
	v, err := parseMount(s)
	if err != nil {
		return err
	}
	*m = append(*m, v)
	return nil
}

// parseMount reads one. A volume's name may have colons, and has no slash: the
// path begins at the first colon that a slash follows.
func parseMount(s string) (v1.MountVolume, error) {
	bad := fmt.Errorf("%q is not a valid mount; write it as NAME:/PATH, NAME/SUB:/PATH or NAME:/PATH:ro", s)
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") {
		return v1.MountVolume{}, fmt.Errorf("%q has a path of this machine, of which nothing is mounted; copy it in by sandpit cp PATH SANDBOX:PATH", s)
	}
	volume, path, ok := strings.Cut(s, ":/")
	if !ok || volume == "" {
		return v1.MountVolume{}, bad
	}
	m := v1.MountVolume{Path: "/" + path}
	for suffix, only := range map[string]bool{":ro": true, ":rw": false} {
		if head, ok := strings.CutSuffix(m.Path, suffix); ok {
			m.Path, m.ReadOnly = head, only
			break
		}
	}
	name, sub, below := strings.Cut(volume, "/")
	if name == "" || below && sub == "" || m.Path == "/" {
		return v1.MountVolume{}, bad
	}
	if m.Volume = name; below {
		m.SubPath = &sub
	}
	return m, nil
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
)

// furnish makes the inside of process 1 on its root.
func (s *start) furnish(context.Context) error {
	in, err := s.d.script.Inside(s.first.pidfd, s.root, s.ids.kit, s.spec.Hostname)
	if err == nil && len(s.volumes.ready) > 0 {
		if err = s.d.script.Attach(s.first.pidfd, s.volumes.ready); err != nil {
			_ = in.Close()
		}
	}
	switch {
	case fault.Is(err, fault.Conflict):
		return err // of what the disk holds, and not of the host
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "the inside of sandbox %s cannot be made", s.i.id).
			WithRemedy("run `sandpit doctor` on the host")
	}
	s.inside, s.files.View = in, in.View
	s.undo.Add(func() { _ = in.View.Close() })
	s.held = append(s.held, in)
	s.d.checkpoint("create.inside")
	return nil
}

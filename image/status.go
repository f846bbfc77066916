// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"

	"sandpit.dev/fault"
)

// State is how far a catalogue entry is on this machine.
type State string

// The states of an entry.
const (
	Missing  State = "missing"
	Building State = "building"
	Ready    State = "ready"
	Failed   State = "failed" // the last build failed; Ensure tries again
)

// Status is one catalogue entry as it is now.
type Status struct {
	Entry
	State State
	// Stage, Text and Progress (0 to 1, never going back) are of a build that
	// goes on in this process, or that this process waits for.
	Stage, Text string
	Progress    float64
	// Image is set when State is Ready.
	Image Image
	// Err says why the last build failed; Output is the last lines of its
	// failing stage, bounded as in BuildError.
	Err    error
	Output []string
}

// List returns every catalogue entry, in the catalogue's order. Polling it is how progress is
// shown: it costs a directory read for an entry that is not ready, and nothing for one that is.
func (s *Store) List(ctx context.Context) ([]Status, error) {
	all := make([]Status, 0, len(s.recipes))
	for _, r := range s.recipes {
		st := Status{Entry: r.Entry, State: Ready, Progress: 1}
		img, err := s.Find(ctx, r.Name)
		switch {
		case err == nil:
			st.Image = img
		case fault.Is(err, fault.NotFound):
			s.unready(&st)
		default:
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

func (s *Store) unready(st *Status) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st.State, st.Progress = Missing, 0
	if b := s.builds[st.Name]; b != nil {
		st.State, st.Stage, st.Text, st.Progress = Building, b.stage, b.text, b.progress
		return
	}
	if err := s.failed[st.Name]; err != nil {
		st.State, st.Err = Failed, err
		if be, ok := errors.AsType[*BuildError](err); ok {
			st.Stage, st.Output = be.Stage, be.Output
		}
	}
}

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

// LayerState is how far a layer is.
type LayerState string

// The states of a layer.
const (
	LayerWaiting   LayerState = "waiting"
	LayerPulling   LayerState = "pulling"
	LayerUnpacking LayerState = "unpacking" // its bytes are here
	LayerReady     LayerState = "ready"
)

// PulledLayer is how far a layer is of an image that is pulled.
type PulledLayer struct {
	Digest     string // as its manifest has it, or as an Engine shortens it
	Done, Size int64  // bytes, as transported; Size is 0 while it is not known
	State      LayerState
}

// Status is one catalogue entry as it is now.
type Status struct {
	Entry
	// Default is true for the image that the empty name means, Allowed for those that new sandboxes
	// may have.
	Default, Allowed bool
	State            State
	// Stage, Text and Progress (0 to 1, never going back) are of a build that
	// goes on in this process, or that this process waits for.
	Stage, Text string
	Progress    float64
	// Layers are those of an image that is pulled, the lowest first, as far as they are known.
	Layers []PulledLayer
	// Image is set when State is Ready, and while one that is there is built anew.
	Image Image
	// Err says why the last build failed, also of one that is there; Output is the last lines of
	// its failing stage, bounded as in BuildError.
	Err    error
	Output []string
}

// List returns every catalogue entry, the default one first, and after them the images of others. Polling it is how progress is
// shown: it costs a directory read for an entry that is not ready, and nothing for one that is.
func (s *Store) List(ctx context.Context) ([]Status, error) {
	all := make([]Status, 0, len(s.recipes))
	usual := s.Default() // of others
	if usual == "" {
		first, err := s.resolve("")
		if err != nil {
			return nil, err
		}
		usual = first.Name
	}
	for _, r := range s.recipes {
		st := Status{Entry: r.Entry, Default: r.Name == usual, Allowed: s.policy.Load().Allows(r.Entry, ""), State: Ready, Progress: 1}
		img, err := s.Find(ctx, r.Name)
		switch {
		case err == nil:
			st.Image = img
			s.anew(&st)
		case fault.Is(err, fault.NotFound):
			s.unready(&st)
		default:
			return nil, err
		}
		all = append(all, st)
	}
	s.rename(all)
	for _, st := range s.listOthers() {
		st.Default = st.Name == usual
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
		st.State = Failed
		st.failedOf(err)
	}
}

// anew says how a build of an image goes that is there.
func (s *Store) anew(st *Status) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if b := s.builds[st.Name]; b != nil {
		st.State, st.Stage, st.Text, st.Progress = Building, b.stage, b.text, b.progress
	} else if err := s.stale[st.Name]; err != nil {
		st.failedOf(err)
	}
}

func (s *Status) failedOf(err error) {
	s.Err = err
	if be, ok := errors.AsType[*BuildError](err); ok {
		s.Stage, s.Output = be.Stage, be.Output
	}
}

// Notes returns, by alias, what [Note] says of those aliases that say something else than what is
// inside. It is empty while that is not known.
func (s *Status) Notes() map[string]string {
	var notes map[string]string
	for _, a := range s.Aliases {
		if n := Note(a, s.Name, s.Image.Versions); n != "" {
			if notes == nil {
				notes = make(map[string]string)
			}
			notes[a] = n
		}
	}
	return notes
}

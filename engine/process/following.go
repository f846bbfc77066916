// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import "sandpit.dev/sandbox"

// FollowRequest says which output of a process is wanted.
type FollowRequest struct {
	Cursor int64 // what comes after this frame; zero: all
	Recent int64 // with Cursor zero: of what there is already, about the last so many bytes; zero: all
	Once   bool  // only what there is by now: do not wait for more
	Own    bool  // the server itself follows: MaxFollowers does not count it
}

// FollowSink takes what a process gave out: every frame once and in order, from
// one goroutine. An error ends the following and becomes Run's.
type FollowSink struct {
	Frame func(sandbox.Frame) error
	Gap   func(Gap) error // nil: gaps are passed over
}

// Gap is output that is in no frame. It stands where the following is at.
type Gap struct {
	Stream sandbox.Stream // zero: of both
	Bytes  int64          // zero: it is not known how many
	Frames int64          // zero: they were in none
	Why    string
}

// FollowEnd is where a following ended.
type FollowEnd struct {
	Ended   bool // the process has, and Result holds; else only Once was asked for
	Result  sandbox.Result
	LastSeq int64 // of the last frame that was given out, or the cursor
}

// Lost tells of what is in no frame, and why, at the end of the stream. Frames that were let
// go of were told where they are missing.
func (s FollowSink) Lost(res sandbox.Result) error {
	if s.Gap == nil {
		return nil
	}
	for _, g := range []struct {
		truncated bool
		cut       sandbox.Cut
		Gap
	}{
		{res.StdoutTruncated, res.StdoutCut, Gap{Stream: sandbox.Stdout, Bytes: res.StdoutLost}},
		{res.StderrTruncated, res.StderrCut, Gap{Stream: sandbox.Stderr, Bytes: res.StderrLost}},
	} {
		if !g.truncated || g.cut == sandbox.CutRolled {
			continue
		}
		g.Why = WhyLost(g.cut)
		if err := s.Gap(g.Gap); err != nil {
			return err
		}
	}
	return nil
}

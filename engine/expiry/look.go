// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"fmt"
	"time"

	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// Look is what is known of a sandbox at one time.
type Look struct {
	Record *sandbox.Sandbox
	Last   Use       // of it; the record may know a later one
	Busy   int       // uses that are not over
	Fair   time.Time // before it nothing counts as idle
	Now    time.Time
}

// Action is what is to be done with a sandbox.
type Action int

// The actions. Of each but Nothing the sandbox's record says enough to do it.
const (
	Nothing Action = iota
	Delete
	DeleteStopped // for being stopped, see [sandbox.Sandbox.DeletesItself]
	Idle          // what OnIdle says
	Expire        // what OnExpiry says, which is not to delete
	Spend         // nothing but to clear ExpiresAt: it came while the sandbox was as it was to become, or further down
)

// Due is what a clock that has struck asks for.
type Due struct {
	Action Action
	Cause  sandbox.Cause
	Detail string // why, for people
	Unused bool   // only if nobody uses the sandbox, and nobody has since the look
}

// Due returns what is due.
func (l Look) Due() Due {
	s, used := l.Record, l.Since()
	due := func(after time.Duration, since time.Time) bool { return after > 0 && !l.Now.Before(since.Add(after)) }
	switch {
	case !s.ExpiresAt.IsZero() && !l.Now.Before(s.ExpiresAt):
		return l.expired()
	case due(s.TTL, used) && l.Busy == 0:
		return Due{Action: Delete, Cause: sandbox.CauseTTL, Unused: true,
			Detail: fmt.Sprintf("it was not used for %s s (ttl); %s", check.Seconds(s.TTL), l.words())}
	case s.DeletesItself():
		return Due{Action: DeleteStopped}
	case (s.State.Down() || s.State == sandbox.Paused) && due(s.Retention, s.StoppedAt):
		return Due{Action: Delete, Cause: sandbox.CauseRetain, Detail: fmt.Sprintf("it was %s for %s s (retention), since %s (%s); %s",
			s.State, check.Seconds(s.Retention), s.StoppedAt.UTC().Format(time.RFC3339), s.StopCause, l.words())}
	case s.State == sandbox.Running && due(s.IdleTimeout, used) && l.Busy == 0:
		return Due{Action: Idle, Cause: sandbox.CauseIdle, Unused: true,
			Detail: fmt.Sprintf("it was idle for %s s (idle_timeout); %s", check.Seconds(s.IdleTimeout), l.words())}
	}
	return Due{}
}

// expired is what the date that has passed asks for.
func (l Look) expired() Due {
	s := l.Record
	d := Due{Action: Delete, Cause: sandbox.CauseTTL, Detail: fmt.Sprintf("its time to live passed at %s (expires_at); %s", s.ExpiresAt.UTC().Format(time.RFC3339), l.words())}
	up := s.State == sandbox.Running || s.State == sandbox.Paused && s.OnExpiry == sandbox.ExpiryStop
	switch {
	case s.OnExpiry.Spends() && up:
		d.Action = Expire
	case s.OnExpiry.Spends():
		d.Action = Spend
		d.Detail = fmt.Sprintf("its time to live passed at %s (expires_at) while it was %s: nothing was to be done", s.ExpiresAt.UTC().Format(time.RFC3339), s.State)
	}
	return d
}

// Since is from when idleness counts: from the last use, or the last start; and not from before
// Fair, since nobody could use it then, or it is not known how long ago that was. A time that is
// still to come was noted before the clock was set back.
func (l Look) Since() time.Time {
	s, since := l.Record, l.Fair
	for _, t := range []time.Time{s.LastActivity, s.StartedAt, s.RunningSince, l.Last.At} {
		if !t.After(l.Now) && t.After(since) {
			since = t
		}
	}
	return since
}

// words tells a person what the last use was, and from when its absence counts.
func (l Look) words() string {
	last := l.Last
	if last.At.IsZero() {
		last.At = l.Record.LastActivity
	}
	text := "last activity: "
	if last.What != "" {
		text += last.What + " "
	}
	text += "at " + last.At.UTC().Format(time.RFC3339)
	if since := l.Since(); since.Equal(l.Fair) && !since.Equal(last.At) {
		text += ", counted from " + since.UTC().Format(time.RFC3339) + ", when the server began, went on after it had stood still, or its clock was set"
	}
	return text
}

// Next is when the sandbox is to be looked at again: when its next clock expires, as far as is known
// by now, if it is to be archived at archive (zero: never). Zero: never.
func (l Look) Next(archive time.Time) time.Time {
	s, used := l.Record, l.Since()
	if l.Busy > 0 {
		used = l.Now // the earliest at which it can become idle
	}
	at := s.ExpiresAt
	if s.TTL > 0 {
		at = Earlier(at, used.Add(s.TTL))
	}
	switch s.State {
	case sandbox.Running:
		if s.IdleTimeout > 0 {
			at = Earlier(at, used.Add(s.IdleTimeout))
		}
	case sandbox.Stopped, sandbox.Archived, sandbox.Paused:
		if !archive.IsZero() {
			at = Earlier(at, archive)
		}
		if s.Retention > 0 {
			at = Earlier(at, s.StoppedAt.Add(s.Retention))
		}
		if s.DeletesItself() {
			at = l.Now
		}
	}
	return at
}

// Earlier is the first of two times, of which the first may be zero: never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

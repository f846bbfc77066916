// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package daytonaterms turns what Daytona's clients say of a sandbox into what the engine is asked for: clocks in
// minutes, sizes in GiB, lists as text. It is what each wire of Daytona's has in common, and no wire: fields have
// Daytona's names, and how they were read and how errors are written is its callers' affair.
//
// What is wrong is returned by field, all at once, and nothing of the request is changed then.
package daytonaterms

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// DefaultStop is the idle time after which a sandbox stops, where nothing is said of it.
const DefaultStop = 15 * time.Minute

// DefaultUser is the user that Daytona's own images have, and clients know.
const DefaultUser = "daytona"

// MaxMinutes is the longest clock.
const MaxMinutes = float64(sandbox.MaxClock / time.Minute)

// Minutes returns the time of a clock.
func Minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

// Clocks are when a sandbox is stopped, paused, archived and destroyed, in minutes; nil: nothing was said of it.
type Clocks struct {
	AutoStop    *float64 // of idling, default 15; 0: never
	AutoPause   *float64 // of idling; 0: never. It excludes AutoStop
	AutoArchive *float64 // after it stopped; 0: never
	AutoDelete  *float64 // after it stopped; 0: at once; below 0, the default: never
	TTL         *float64 // after now; 0: never
}

// Apply sets the clocks of a request, and returns what is wrong with them.
func (c Clocks) Apply(r *engine.CreateRequest) (bad []fault.Field) {
	add := func(name, message string) { bad = append(bad, fault.Field{Name: name, Message: message}) }
	for _, f := range []struct {
		name    string
		minutes *float64
		least   float64
	}{
		{"autoStopInterval", c.AutoStop, 0}, {"autoPauseInterval", c.AutoPause, 0}, {"autoArchiveInterval", c.AutoArchive, 0},
		{"autoDeleteInterval", c.AutoDelete, math.Inf(-1)}, {"ttlMinutes", c.TTL, 0},
	} {
		if m := f.minutes; m != nil && (math.IsNaN(*m) || *m < f.least || *m > MaxMinutes) {
			add(f.name, "is outside 0 to "+strconv.Itoa(int(MaxMinutes))+" minutes")
		}
	}
	stop, pause, after := given(c.AutoStop, 0), given(c.AutoPause, 0), given(c.AutoDelete, -1)
	if stop > 0 && pause > 0 {
		add("autoPauseInterval", "cannot be combined with autoStopInterval: set one of them to 0")
	} else if after == 0 && pause > 0 {
		add("autoDeleteInterval", "0 destroys it when it stops, and cannot be combined with autoPauseInterval")
	}
	if len(bad) > 0 {
		return bad
	}
	r.IdleTimeout = new(DefaultStop)
	switch {
	case pause > 0:
		r.IdleTimeout, r.OnIdle, r.AutoResume = new(Minutes(pause)), new(sandbox.IdlePause), new(true)
	case c.AutoStop != nil:
		r.IdleTimeout = new(Minutes(stop))
	}
	r.ArchiveAfter, r.TTL = Minutes(given(c.AutoArchive, 0)), Minutes(given(c.TTL, 0))
	switch {
	case after < 0:
		r.Retention = new(time.Duration(0))
	case after > 0:
		r.Retention = new(Minutes(after))
	default:
		r.AutoDelete = new(true)
	}
	return nil
}

func given(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

// Limits returns the limits of so many processors and GiB of memory and of disk; 0: the server's default.
func Limits(cpu, memory, disk float64) sandbox.Limits {
	return sandbox.Limits{CPU: cpu, MemoryMB: megabytes(memory), DiskMB: megabytes(disk)}
}

// megabytes returns GiB in MiB, and for what is no such size one that the engine refuses.
func megabytes(gib float64) int {
	switch mib := 1024 * gib; {
	case math.IsNaN(mib) || mib > math.MaxInt32:
		return math.MaxInt32
	case mib < math.MinInt32:
		return math.MinInt32
	case gib > 0 && mib < 1:
		return 1 // not the default, which 0 is
	default:
		return int(mib)
	}
}

// Network returns what a sandbox may reach: nothing, or what a list separated by commas names, domains and ranges of
// addresses; nil: nothing was said.
func Network(blockAll bool, allow string) (*sandbox.NetworkPolicy, []fault.Field) {
	p := &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	for one := range strings.SplitSeq(allow, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		if cidr, err := sandbox.ParseCIDR("networkAllowList", one); err == nil {
			p.AllowCIDRs = append(p.AllowCIDRs, cidr)
		} else {
			p.AllowDomains = append(p.AllowDomains, one) // the engine says what is wrong with one
		}
	}
	switch listed := len(p.AllowCIDRs)+len(p.AllowDomains) > 0; {
	case blockAll && listed:
		return nil, []fault.Field{{Name: "networkAllowList", Message: "is given, and networkBlockAll blocks all of it; give one of them"}}
	case blockAll:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	case listed:
		return p, nil
	}
	return nil, nil
}

// Origin returns what a sandbox begins with, of what Daytona calls a snapshot: one of ours, by its id or as
// SANDBOX/NAME, or an image.
func Origin(snapshot string) (from, image string) {
	if sandbox.ValidID(snapshot) || strings.Contains(snapshot, "/") {
		return snapshot, ""
	}
	return "", snapshot
}

// OnlyFrom returns the image of a Dockerfile that does nothing else than name it.
func OnlyFrom(dockerfile string) (image string, ok bool) {
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case image == "" && len(words) == 2 && strings.EqualFold(words[0], "FROM"):
			image = words[1]
		default:
			return "", false
		}
	}
	return image, image != ""
}

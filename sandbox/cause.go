// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "strings"

// Cause says why a process or a sandbox ended, if it did not end by itself.
type Cause string

const (
	CauseNone    Cause = ""        // it ended by itself
	CauseTimeout Cause = "timeout" // its time limit passed and we killed it
	CauseOOM     Cause = "oom"     // the kernel killed it: its sandbox's memory limit was reached; of a sandbox: its agent's
	CausePids    Cause = "pids"    // it failed while its sandbox's limit of processes was reached
	CauseDisk    Cause = "disk"    // it failed while its sandbox's disk was full
	CauseKilled  Cause = "killed"  // a caller killed it, or a signal of unknown origin did
	CauseStopped Cause = "stopped" // its sandbox was stopped or deleted under it
	CauseHost    Cause = "host"    // the host, or the sandbox's first process, went away under it
	CauseIdle    Cause = "idle"    // a sandbox's idle timeout passed
	CauseTTL     Cause = "ttl"     // a sandbox's time to live passed
	CauseUser    Cause = "user"    // a caller asked for it
	CauseRetain  Cause = "retention"
	CauseRestore Cause = "restore" // its disk was exchanged under it
	CausePromote Cause = "promote" // its fork took its place
	CauseRestart Cause = "restart" // a caller asked for a restart, and it is not up again yet
)

// ReasonPromoted is the reason of errors about a sandbox that is gone since its fork took its place.
const ReasonPromoted = "promoted"

// ReasonNoSandbox is the reason of errors about a sandbox that is not there, where the request may name other things, too.
const ReasonNoSandbox = "no_sandbox"

// What [PlaceGiven] puts around the id.
const placeGivenTo, placeGiven = "its fork ", " was given its place"

// PlaceGiven is the detail of CausePromote: which fork took the sandbox's place.
func PlaceGiven(fork ID) string { return placeGivenTo + string(fork) + placeGiven }

// Successor returns the fork that a detail which begins as [PlaceGiven] names; "": it names none.
func Successor(detail string) ID {
	rest, begins := strings.CutPrefix(detail, placeGivenTo)
	id, _, names := strings.Cut(rest, placeGiven)
	if !begins || !names || !ValidID(id) {
		return ""
	}
	return ID(id)
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

// Place is where the value of a secret could come out.
type Place int

const (
	Output  Place = iota // what commands print, before it is logged
	Code                 // what code of contexts prints, returns and raises
	Record               // events, names of changed files, the network's log
	LogLine              // lines of the server's log
	Echo                 // answers of the hosts that a secret is bound to
	places
)

// Places returns all places, in the order of their constants.
func Places() []Place { return []Place{Output, Code, Record, LogLine, Echo} }

// String returns what tables call the place.
func (p Place) String() string {
	return [...]string{"commands", "code", "records", "log", "bound hosts"}[p]
}

// Masks reports whether a value that comes out at the place in a spelling is masked. Where
// it is not, why is the reason.
func (p Place) Masks(s Spelling) (masked bool, why string) {
	c := table[s].at[p]
	return c == yes, reasons[c]
}

// streams reports whether text comes to the place in pieces. The search holds the end of
// each back, so the lengths of what it looks for are bounded.
func (p Place) streams() bool { return p == Output || p == Code }

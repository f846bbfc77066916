// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	v1 "sandpit.dev/api/v1"
)

func TestWhatAnEventWasAboutStandsApartFromWhatIsToldOfIt(t *testing.T) {
	for want, e := range map[string]v1.Event{
		"sleep 60 — its time limit of 1s passed": {Command: "sleep 60", Detail: "its time limit of 1s passed"},
		"sleep 60":                             {Command: "sleep 60"},
		"stopped by somebody":                  {Detail: "stopped by somebody"},
		"as root: mv a to b (2 files changed)": {User: "root", Command: "mv a", To: "b", FilesChangedTotal: 2},
		"":                                     {User: "sandbox"},
	} {
		if got := about(&e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

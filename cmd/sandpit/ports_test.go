// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"sandpit.dev/cmd/sandpit/internal/app"
)

func TestParseForward(t *testing.T) {
	c := newForward(&app.App{})
	for arg, want := range map[string]forwarded{
		"8000": {8000, 8000}, "9000:8000": {9000, 8000}, "0:8000": {0, 8000}, "65535:1": {65535, 1},
	} {
		if got, err := parseForward(c, arg); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", "0", "x", ":", "8000:", ":8000", "8000:0", "1:2:3", "65536", "-1:80", "127.0.0.1:8000"} {
		if got, err := parseForward(c, arg); err == nil {
			t.Errorf("%q: got %+v", arg, got)
		}
	}
}

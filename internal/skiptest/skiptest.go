// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package skiptest skips tests that have no place in a run of tests. Each skip says why.
package skiptest

import (
	"os"
	"os/exec"
	"testing"
)

// WithoutRoot skips a test that only root can run. With -short, which asks for the tests that
// any user can run, it skips it for root too.
func WithoutRoot(tb testing.TB, why string) {
	tb.Helper()
	switch {
	case os.Geteuid() != 0:
		tb.Skip("needs root: " + why)
	case testing.Short():
		tb.Skip("needs root, and -short leaves out what does: " + why)
	}
}

// WithShort skips a test that takes long where -short is set.
func WithShort(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes long, and -short leaves that out: " + why)
	}
}

// WithoutGit skips a test of the memory runtime, whose commands are the host's, where the host has no git.
func WithoutGit(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		tb.Skip("this host has no git, which the memory runtime would run")
	}
}

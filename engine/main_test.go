// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in the process that crash tests start, the
// server that is to die.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(crash(dir, os.Getenv(crashPoint)))
	}
	goleak.VerifyTestMain(m)
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package destination_test

import (
	"strings"
	"testing"

	"sandpit.dev/linux/destination"
)

func TestADatagramWithoutAGoal(t *testing.T) {
	for _, oob := range [][]byte{nil, {1}, make([]byte, 16), []byte(strings.Repeat("\xff", 64))} {
		if to, _ := destination.Of(oob); to.IsValid() {
			t.Errorf("%x is for %s", oob, to)
		}
	}
}

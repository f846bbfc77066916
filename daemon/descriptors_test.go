// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestFewDescriptors(t *testing.T) {
	for limit, want := range map[uint64]struct{ refused, warned bool }{
		100: {true, false}, 256: {true, false}, leastFiles - 1: {true, false},
		leastFiles: {false, true}, fewFiles - 1: {false, true}, fewFiles: {false, false},
	} {
		var told bytes.Buffer
		err := judgeDescriptors(slog.New(slog.NewTextHandler(&told, nil)), limit)
		if (err != nil) != want.refused || (told.Len() > 0) != want.warned {
			t.Errorf("%d: %v, told %q", limit, err, &told)
		}
		if err != nil && (!strings.Contains(err.Error(), "512") || !strings.Contains(fault.As(err).Remedy, "ulimit")) {
			t.Errorf("%d: %v, remedy %q", limit, err, fault.As(err).Remedy)
		}
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProgress(t *testing.T) {
	type told struct {
		At      time.Duration
		Message string
	}
	start := func(t *testing.T, heard *[]told) *Progress {
		began := time.Now()
		before := 0.0
		return StartProgress(t.Context(), func(_ context.Context, count float64, message string) {
			if count <= before {
				t.Errorf("the count went from %v to %v", before, count)
			}
			before = count
			*heard = append(*heard, told{time.Since(began), message})
		})
	}

	t.Run("TellsTheLastLineAtMostTwiceASecond", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var heard []told
			p := start(t, &heard)
			time.Sleep(50 * time.Millisecond) // so that no line is half written when it is told
			for i := range 100 {              // ten seconds
				p.Wrote(fmt.Appendf(nil, "line %d\nhalf", i))
				p.Wrote([]byte(" of one\n"))
				time.Sleep(100 * time.Millisecond)
			}
			p.Stop()
			if len(heard) > 20 || len(heard) < 18 {
				t.Errorf("told %d times in ten seconds, want 19 or 20", len(heard))
			}
			for _, h := range heard {
				if h.Message != "half of one" {
					t.Errorf("told %q", h.Message)
				}
			}
		})
	})

	t.Run("BeatsWhenThereIsNoOutput", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var heard []told
			p := start(t, &heard)
			time.Sleep(46 * time.Second)
			p.Stop()
			want := []told{{15 * time.Second, "running for 15s"}, {30 * time.Second, "running for 30s"}, {45 * time.Second, "running for 45s"}}
			if diff := cmp.Diff(want, heard); diff != "" {
				t.Error("told (-want +got):\n" + diff)
			}
		})
	})

	t.Run("BoundsALine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var heard []told
			p := start(t, &heard)
			p.Wrote([]byte(strings.Repeat("世", 100_000)))
			time.Sleep(time.Second)
			p.Stop()
			if len(heard) != 1 || utf8.RuneCountInString(heard[0].Message) != lineShown {
				t.Errorf("told %v", heard)
			}
		})
	})

	t.Run("NobodyAskedIsFine", func(t *testing.T) {
		var p *Progress
		p.Wrote([]byte("x"))
		p.Say("x")
		p.Stop()
	})
}

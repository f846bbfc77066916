// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"strconv"
	"strings"
	"time"
)

// Instant reads a time, or how long before now it is: 30d, 12h, 2026-01-31T12:00:00Z or 2026-01-31. It returns the zero
// Time for "", and reports whether s is one of these.
func Instant(now time.Time, s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, -n), err == nil && n > 0
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), d > 0
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

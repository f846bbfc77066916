// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "time"

// Times are kept in microseconds: nanoseconds would not reach the year 2263,
// and tokens live long.

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

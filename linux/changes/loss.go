// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import "fmt"

// loss reports whether something is missing in an answer, and by its first reason
// what: the answer itself says no more than that it is not Complete.
type loss struct{ reason error }

func (l *loss) because(reason error) {
	if l.reason == nil {
		l.reason = reason
	}
}

// becausef returns a reason of a system call that failed.
func (l *loss) becausef(err error, format string, args ...any) {
	if l.reason == nil {
		l.reason = fmt.Errorf(format+": %w", append(args, err)...)
	}
}

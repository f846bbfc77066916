// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	stdlog "log"
	"log/slog"
)

// captureStandardLog redirects Go's standard logger, which libraries write to, into log at debug
// level, until restore is called. net/http writes there what a program behind a preview or a host
// answered out of turn: outside log it would be neither redacted nor filtered.
func captureStandardLog(log *slog.Logger) (restore func()) {
	out, flags, prefix := stdlog.Writer(), stdlog.Flags(), stdlog.Prefix()
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	stdlog.SetFlags(0)
	stdlog.SetPrefix("")
	return func() {
		stdlog.SetOutput(out)
		stdlog.SetFlags(flags)
		stdlog.SetPrefix(prefix)
	}
}
